package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	max32, max64 := run(extreme[float32](1)), run(extreme[float64](1))
	min32, min64 := run(extreme[float32](-1)), run(extreme[float64](-1))
	register("max", max32, max64)
	register("min", min32, min64)
	back32, back64 := run(extremeBackward[float32]), run(extremeBackward[float64])
	back32.Mixed, back64.Mixed = true, true
	register("extreme backward", back32, back64)
}

// lanes calls fn for blocks of neighbouring lanes, of n elements inner apart: at is the
// first one's first element, out its number, side how many lanes there are in the block.
// Work is shared by blocks.
func lanes(a *driver.Args, total, n, inner int, fn func(at, out, side int)) {
	const most = 64
	blocks := (inner + most - 1) / most
	if n == 0 || inner == 0 {
		return
	}
	par.Range(a.Threads, total/(n*inner)*blocks, max(1, grain/(n*min(inner, most))), func(lo, hi int) {
		for b := lo; b < hi; b++ {
			outer, first := b/blocks, b%blocks*most
			fn(outer*n*inner+first, outer*inner+first, min(most, inner-first))
		}
	})
}

// extreme gives the greatest element of each lane, times sign, and where it is; F: n, inner.
func extreme[T float32 | float64](sign T) func(*driver.Args) {
	return func(a *driver.Args) {
		n, inner := int(a.F[0]), int(a.F[1])
		x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
		index := store[int64](&a.Out[1])
		lanes(a, a.In[0].Len(), n, inner, func(at, out, side int) {
			var best [64]T
			var where [64]int64
			for j := range n {
				row := x[at+j*inner : at+j*inner+side]
				for i, v := range row {
					v *= sign
					if b := best[i]; v > b || j == 0 || v != v && b == b {
						best[i], where[i] = v, int64(j)
					}
				}
			}
			for i := range side {
				y[out+i] = best[i] * sign
			}
			index(where[:side], out, 1)
		})
	}
}

// extremeBackward: dy, index; F: n, inner.
func extremeBackward[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	dy, dx := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	index := driver.Of[int32](&a.In[1])
	lanes(a, a.Out[0].Len(), n, inner, func(at, out, side int) {
		for j := range n {
			clear(dx[at+j*inner : at+j*inner+side])
		}
		for i := range side {
			dx[at+int(index[out+i])*inner+i] = dy[out+i]
		}
	})
}
