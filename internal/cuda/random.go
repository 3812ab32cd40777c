package cuda

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

func init() {
	register("dropout", floats, driver.Kernel{Run: dropout})
	for _, name := range []string{"uniform", "normal"} {
		register(name, floats, driver.Kernel{Run: func(a *driver.Args) {
			out := &a.Out[0]
			n := out.Len()
			run(a, "random", function(name, out.Type), spread(n, 4), n, dense(out), a.Key[:], a.F[0], a.F[1], out)
		}})
	}
}

func dropout(a *driver.Args) {
	x, out := &a.In[0], &a.Out[0]
	n, p := out.Len(), a.F[0]
	limit := int(math.Ceil(p * (1 << 24)))
	run(a, "random", function("dropout", x.Type), spread(n, 4), n, dense(out, x), a.Key[:], limit, 1/(1-p), out, x)
}
