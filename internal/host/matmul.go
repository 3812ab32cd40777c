package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	register("matmul", driver.Kernel{Run: matmul[float32], Strided: true}, driver.Kernel{Run: matmul[float64], Strided: true})
}

func matmul[T float32 | float64](a *driver.Args) {
	out := a.Out[0]
	n := len(out.Shape)
	lead := out.Shape[:n-2]
	x := driver.Expand(&a.In[0], append(append([]int{}, lead...), a.In[0].Shape[len(a.In[0].Shape)-2:]...))
	y := driver.Expand(&a.In[1], append(append([]int{}, lead...), a.In[1].Shape[len(a.In[1].Shape)-2:]...))
	m, p, k := out.Shape[n-2], out.Shape[n-1], x.Shape[n-1]
	xs, ys, os := driver.Of[T](&x), driver.Of[T](&y), driver.Of[T](&out)
	batch := driver.Numel(lead)
	if batch == 0 || m == 0 || p == 0 {
		return
	}
	offs := func(st []int) (o []int) {
		driver.Runs(lead, st[:n-2], 0, batch, func(off, s, c int) {
			for i := range c {
				o = append(o, off+i*s)
			}
		})
		return
	}
	xo, yo := offs(x.Strides), offs(y.Strides)
	par.For(a.Threads, batch, func(b int) {
		for i := range m {
			for j := range p {
				var s float64
				for l := range k {
					s += float64(xs[xo[b]+i*x.Strides[n-2]+l*x.Strides[n-1]]) * float64(ys[yo[b]+l*y.Strides[n-2]+j*y.Strides[n-1]])
				}
				if len(a.In) > 2 {
					s += float64(driver.Of[T](&a.In[2])[j*a.In[2].Strides[0]])
				}
				os[(b*m+i)*p+j] = T(s)
			}
		}
	})
}
