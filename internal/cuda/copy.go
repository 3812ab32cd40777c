package cuda

import (
	"fmt"
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

// What the kernels are called, by type.
var (
	copies [driver.Bool + 1]string
	fills  = functions("fill")
	casts  [driver.Bool + 1][driver.Bool + 1]string // from and to
)

func init() {
	for t := range casts {
		from := driver.DType(t)
		copies[t] = fmt.Sprintf("copy_%d", from.Size())
		casts[t] = functions("cast" + suffixes[from])
	}
	register("copy", all, driver.Kernel{Strided: true, Run: convert}) // from and to any strides
	register("cast", all, driver.Kernel{Strided: true, Run: convert})
	register("fill", all, driver.Kernel{Strided: true, Run: fill})
}

func convert(a *driver.Args) {
	from, to := a.In[0].Type, a.Out[0].Type
	if from == to {
		eachBy(a, "copy", copies[from], 16/from.Size())
		return
	}
	eachBy(a, "copy", casts[from][to], 16/min(from.Size(), to.Size()))
}

func fill(a *driver.Args) {
	out := &a.Out[0]
	if out.Contiguous() && math.Float64bits(a.F[0]) == 0 {
		zero(a, out.Data[:out.Len()*out.Type.Size()])
		return
	}
	eachBy(a, "copy", fills[out.Type], 16/out.Type.Size())
}
