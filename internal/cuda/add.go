package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	elementwise("add", floats, "add", "scale")
	register("lerp", floats, driver.Kernel{Strided: true, Run: lerp})
}

// lerp's second input may have another type.
func lerp(a *driver.Args) {
	x, y, out := &a.In[0], &a.In[1], &a.Out[0]
	if x.Type == y.Type {
		each(a, "add", "lerp")
		return
	}
	n := out.Len()
	run(a, "add", function("lerp mixed", x.Type), spread(n, 1), n, a.F[0], a.F[1], out, x, operandOf(y, out.Shape))
}
