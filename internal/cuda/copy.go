package cuda

import (
	"fmt"
	"math"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
)

// What the kernels are called, by type.
var (
	copies, transposes [driver.Bool + 1]string
	fills              = functions("fill")
	casts              [driver.Bool + 1][driver.Bool + 1]string // from and to
)

func init() {
	for t := range casts {
		from := driver.DType(t)
		copies[t], transposes[t] = fmt.Sprintf("copy_%d", from.Size()), fmt.Sprintf("transpose_%d", from.Size())
		casts[t] = functions("cast" + suffixes[from])
	}
	register("copy", all, driver.Kernel{Strided: true, Run: convert}) // from and to any strides
	register("cast", all, driver.Kernel{Strided: true, Run: convert})
	register("fill", all, driver.Kernel{Strided: true, Run: fill})
}

func convert(a *driver.Args) {
	from, to := a.In[0].Type, a.Out[0].Type
	if from == to {
		if !transpose(a) {
			eachBy(a, "copy", copies[from], 16/from.Size())
		}
		return
	}
	eachBy(a, "copy", casts[from][to], 16/min(from.Size(), to.Size()))
}

// transpose copies tiles by way of shared memory, so that both sides go along memory, where
// the input's neighbours lie along another dimension than the output's. It reports whether
// that was so.
func transpose(a *driver.Args) bool {
	const tile = 32
	x, out := &a.In[0], &a.Out[0]
	dims := joint(nil, []*driver.Array{out, x})
	last := len(dims) - 1
	across := slices.IndexFunc(dims, func(d dim) bool { return d.strides[1] == 1 })
	if across < 0 || across == last || dims[last].strides[0] != 1 || min(dims[across].length, dims[last].length) < tile/2 || out.Len() == 0 {
		return false
	}
	rows, cols := dims[across], dims[last]
	rest := slices.Delete(dims[:last], across, across+1)
	blocks := line(rows.length, tile)[0] * line(cols.length, tile)[0]
	for _, d := range rest {
		blocks *= d.length
	}
	launch(a, "copy", transposes[x.Type], [3]int{blocks, 1, 1}, [3]int{tile, 8, 1}, 0,
		rows.length, cols.length, rows.strides[0], cols.strides[1], walk(rest, 2), out, x)
	return true
}

func fill(a *driver.Args) {
	out := &a.Out[0]
	if out.Contiguous() && math.Float64bits(a.F[0]) == 0 {
		zero(a, out.Data[:out.Len()*out.Type.Size()])
		return
	}
	eachBy(a, "copy", fills[out.Type], 16/out.Type.Size())
}
