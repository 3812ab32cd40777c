package cuda

import (
	"fmt"
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

func init() {
	k := driver.Kernel{Strided: true, Run: convert}
	register("copy", all, k) // from and to any strides
	register("cast", all, k)
	register("fill", all, driver.Kernel{Strided: true, Run: fill})
}

func convert(a *driver.Args) {
	from, to := a.In[0].Type, a.Out[0].Type
	if from == to {
		eachBy(a, "copy", fmt.Sprintf("copy_%d", from.Size()), 16/from.Size())
		return
	}
	eachBy(a, "copy", function("cast"+suffixes[from], to), 16/min(from.Size(), to.Size()))
}

func fill(a *driver.Args) {
	out := &a.Out[0]
	if out.Contiguous() && math.Float64bits(a.F[0]) == 0 {
		zero(a, out.Data[:out.Len()*out.Type.Size()])
		return
	}
	eachBy(a, "copy", function("fill", out.Type), 16/out.Type.Size())
}
