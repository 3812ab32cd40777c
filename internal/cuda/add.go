package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	elementwise("add", floats, "add", "scale")
	alike := each("add", "lerp")
	register("lerp", floats, driver.Kernel{Strided: true, Run: func(a *driver.Args) {
		if a.In[0].Type == a.In[1].Type {
			alike(a)
		} else {
			lerpMixed(a)
		}
	}})
}

// lerpMixed is of arrays without gaps.
func lerpMixed(a *driver.Args) {
	x, y, out := &a.In[0], &a.In[1], &a.Out[0]
	n := out.Len()
	run(a, "add", function("lerp mixed", x.Type), spread(n, 1), n, a.F[0], a.F[1], out, x, operandOf(y, out.Shape))
}
