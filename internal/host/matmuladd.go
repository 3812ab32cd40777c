package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	adds := func(t driver.DType, run func(*driver.Args)) {
		driver.Register("matmul add", t, backend, driver.Kernel{Strided: true, Run: run, Workspace: func(a *driver.Args) int64 {
			x, y := a.In[0].Shape, a.In[1].Shape
			return kern.GemmWorkspace(t, x[0], y[1], x[1], a.Threads, true)
		}})
	}
	adds(driver.Float32, matmulAdd[float32])
	adds(driver.Float64, matmulAdd[float64])
	adds(driver.BFloat16, matmulAdd[driver.B16])
	adds(driver.Float16, matmulAdd[driver.F16])
}

// matmulAdd: matrices x and y of any strides; adds their product to the output's rows.
func matmulAdd[T kern.Elem](a *driver.Args) {
	x, y, out := &a.In[0], &a.In[1], &a.Out[0]
	kern.Gemm(a.Threads, x.Shape[0], y.Shape[1], x.Shape[1],
		kern.Mat[T]{Data: driver.Of[T](x), RS: x.Strides[0], CS: x.Strides[1]},
		kern.Mat[T]{Data: driver.Of[T](y), RS: y.Strides[0], CS: y.Strides[1]},
		kern.Mat[T]{Data: driver.Of[T](out), RS: out.Strides[0], CS: 1},
		true, nil, a.Work)
}
