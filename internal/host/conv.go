package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	convs(driver.Float32, conv[float32], convData[float32], convWeights[float32])
	convs(driver.Float64, conv[float64], convData[float64], convWeights[float64])
	convs(driver.BFloat16, conv[driver.B16], convData[driver.B16], convWeights[driver.B16])
	convs(driver.Float16, conv[driver.F16], convData[driver.F16], convWeights[driver.F16])
}

func convs(t driver.DType, forward, data, weights func(*driver.Args)) {
	pass := func(name string, pass kern.Pass, run func(*driver.Args), shape func(a *driver.Args) kern.Conv) {
		driver.Register(name, t, backend, driver.Kernel{Run: run, Workspace: func(a *driver.Args) int64 {
			return kern.ConvWorkspace(t, shape(a), pass, a.Threads)
		}})
	}
	pass("conv", kern.Forward, forward, convOf)
	pass("conv backward data", kern.BackwardData, data, convDataOf)
	pass("conv backward weights", kern.BackwardWeights, weights, convWeightsOf)
}

// convShape is that of a convolution from image to result. F: stride, padding, dilation,
// groups.
func convShape(f []float64, image, weight *driver.Array) kern.Conv {
	x, w := image.Shape, weight.Shape
	s, p, d := int(f[0]), int(f[1]), int(f[2])
	return kern.Conv{
		N: x[0], C: x[1], H: x[2], W: x[3], O: w[0], KH: w[2], KW: w[3],
		SH: s, SW: s, PH: p, PW: p, DH: d, DW: d, G: int(f[3]),
	}
}

func convOf(a *driver.Args) kern.Conv        { return convShape(a.F, &a.In[0], &a.In[1]) }
func convDataOf(a *driver.Args) kern.Conv    { return convShape(a.F, &a.Out[0], &a.In[1]) }
func convWeightsOf(a *driver.Args) kern.Conv { return convShape(a.F, &a.In[0], &a.Out[0]) }

// conv: x, w and a bias that may be missing.
func conv[T kern.Elem](a *driver.Args) {
	var bias []T
	if len(a.In) == 3 {
		bias = driver.Of[T](&a.In[2])
	}
	kern.ConvForward(a.Threads, convOf(a), driver.Of[T](&a.In[0]), driver.Of[T](&a.In[1]), bias, driver.Of[T](&a.Out[0]), a.Work)
}

// convData: dy, w.
func convData[T kern.Elem](a *driver.Args) {
	kern.ConvBackwardData(a.Threads, convDataOf(a), driver.Of[T](&a.In[0]), driver.Of[T](&a.In[1]), driver.Of[T](&a.Out[0]), a.Work)
}

// convWeights: x, dy.
func convWeights[T kern.Elem](a *driver.Args) {
	kern.ConvBackwardWeights(a.Threads, convWeightsOf(a), driver.Of[T](&a.In[0]), driver.Of[T](&a.In[1]), driver.Of[T](&a.Out[0]), a.Work)
}
