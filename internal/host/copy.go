package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for t := driver.Float32; t <= driver.Bool; t++ {
		driver.Register("copy", t, backend, converting(t, t)) // from and to any strides
		driver.Register("fill", t, backend, converting(driver.Float64, t))
		driver.Register("cast", t, backend, driver.Kernel{Strided: true, Run: func(a *driver.Args) {
			if !halves(a) {
				converting(t, a.Out[0].Type).Run(a)
			}
		}})
	}
}

var (
	copies32 = rows(same[float32])
	copies64 = rows(same[float64])
	copiesI  = rows(same[int64])
)

// same copies; without an input it fills with F[0].
func same[T number](f []float64, dst, x, _, _ []T) {
	if x != nil {
		copy(dst, x)
		return
	}
	for i := range dst {
		dst[i] = T(f[0])
	}
}

// converting passes values through a type that holds those of both.
func converting(from, to driver.DType) driver.Kernel {
	exact := func(t driver.DType) bool { return t == driver.Float64 || !t.Float() }
	switch {
	case !from.Float() && !to.Float():
		return copiesI
	case exact(from) || exact(to):
		return copies64
	}
	return copies32
}

// halves casts from float32 to a 16-bit type, or back, if both lie in order. It reports
// whether it did.
func halves(a *driver.Args) bool {
	from, to := &a.In[0], &a.Out[0]
	if !from.Contiguous() || !to.Contiguous() {
		return false
	}
	switch {
	case from.Type == driver.Float32 && to.Type == driver.BFloat16:
		convert(a, kern.NarrowRow[driver.B16])
	case from.Type == driver.Float32 && to.Type == driver.Float16:
		convert(a, kern.NarrowRow[driver.F16])
	case from.Type == driver.BFloat16 && to.Type == driver.Float32:
		convert(a, kern.WidenRow[driver.B16])
	case from.Type == driver.Float16 && to.Type == driver.Float32:
		convert(a, kern.WidenRow[driver.F16])
	default:
		return false
	}
	return true
}

func convert[To, From float32 | driver.B16 | driver.F16](a *driver.Args, row func(dst []To, src []From)) {
	dst, src, n := driver.Of[To](&a.Out[0]), driver.Of[From](&a.In[0]), a.Out[0].Len()
	par.Range(a.Threads, n, resultGrain(n), func(lo, hi int) { row(dst[lo:hi], src[lo:hi]) })
}

// Clear sets memory to 0, on all threads: what is new is slow to touch for the first time.
func Clear(mem []byte) {
	par.Range(0, len(mem), 1<<20, func(lo, hi int) { clear(mem[lo:hi]) })
}
