package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("square deviation", floats, driver.Kernel{
		Strided: true, Mixed: true,
		Workspace: func(a *driver.Args) int64 { return lastDims(a).workspace() },
		Run: func(a *driver.Args) {
			means := &a.In[1]
			reduceLast(a, "var", "square deviation", operandOf(means, means.Shape))
		},
	})
	register("var backward", floats, driver.Kernel{
		Strided: true, Mixed: true,
		Run: each("var", "var backward"),
	})
}
