package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for name, k := range map[string][2]driver.Kernel{
		"index select":          {run(indexSelect[float32]), run(indexSelect[float64])},
		"index select backward": {run(indexSelectBackward[float32]), run(indexSelectBackward[float64])},
		"gather":                {run(gather[float32]), run(gather[float64])},
		"gather backward":       {run(gatherBackward[float32]), run(gatherBackward[float64])},
	} {
		k[0].Mixed, k[1].Mixed = true, true
		register(name, k[0], k[1])
	}
}

// indexSelect: x, index; F: n, inner, as lanes has them.
func indexSelect[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	index := values[int64](&a.In[1])
	k := len(index)
	if k == 0 || inner == 0 {
		return
	}
	par.Range(a.Threads, a.Out[0].Len()/inner, max(1, grain/inner), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from := (i/k*n + int(index[i%k])) * inner
			copy(y[i*inner:(i+1)*inner], x[from:from+inner])
		}
	})
}

// indexSelectBackward: dy, index; F: n, inner. Each slice's uses are added in their order.
func indexSelectBackward[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	dy, dx := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	index := values[int64](&a.In[1])
	k := len(index)
	lanes(a, a.Out[0].Len(), n, inner, func(at, out, side int) {
		for j := range n {
			clear(dx[at+j*inner : at+j*inner+side])
		}
		from := out/inner*k*inner + out%inner
		for _, j := range index {
			to := dx[at+int(j)*inner : at+int(j)*inner+side]
			for i, v := range dy[from : from+side] {
				to[i] += v
			}
			from += inner
		}
	})
}

// gather: x, index; F: n, inner.
func gather[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	index := values[int64](&a.In[1])
	k := a.Out[0].Len() / max(1, a.In[0].Len()/max(1, n))
	lanes(a, a.Out[0].Len(), k, inner, func(at, out, side int) {
		from := out/inner*n*inner + out%inner
		for j := range k {
			to := at + j*inner
			for i, v := range index[to : to+side] {
				y[to+i] = x[from+int(v)*inner+i]
			}
		}
	})
}

// gatherBackward: dy, index; F: n, inner.
func gatherBackward[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	dy, dx := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	index := values[int64](&a.In[1])
	k := a.In[0].Len() / max(1, a.Out[0].Len()/max(1, n))
	lanes(a, a.Out[0].Len(), n, inner, func(at, out, side int) {
		for j := range n {
			clear(dx[at+j*inner : at+j*inner+side])
		}
		from := out/inner*k*inner + out%inner
		for range k {
			for i, v := range index[from : from+side] {
				dx[at+int(v)*inner+i] += dy[from+i]
			}
			from += inner
		}
	})
}
