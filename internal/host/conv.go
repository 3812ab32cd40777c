package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	convs[float32](driver.Float32)
	convs[float64](driver.Float64)
	convs[driver.B16](driver.BFloat16)
	convs[driver.F16](driver.Float16)
}

func convs[T kern.Elem](t driver.DType) {
	pass := func(name string, pass kern.Pass, run func(*driver.Args), shape func(a *driver.Args) kern.Conv, weights func(a *driver.Args) *driver.Array) {
		driver.Register(name, t, backend, driver.Kernel{Run: run, Wide: t.Half(), Workspace: func(a *driver.Args) int64 {
			return kern.ConvMixedWorkspace(t, weights(a).Type, shape(a), pass, a.Threads)
		}})
	}
	second := func(a *driver.Args) *driver.Array { return &a.In[1] }
	result := func(a *driver.Args) *driver.Array { return &a.Out[0] }
	pass("conv", kern.Forward, conv[T], convOf, second)
	pass("conv backward data", kern.BackwardData, convData[T], convDataOf, second)
	pass("conv backward weights", kern.BackwardWeights, convWeights[T], convWeightsOf, result)
	pass("conv backward weights add", kern.BackwardWeights, convWeightsAdd[T], convWeightsOf, result)
}

// wide reports whether weights are float32 beside 16 bits.
func wide[T kern.Elem](weights *driver.Array) bool {
	_, single := any(T(0)).(float32)
	return weights.Type == driver.Float32 && !single
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

// conv: x, w and a bias that may be missing. Beside x of 16 bits w may be float32, in all
// passes.
func conv[T kern.Elem](a *driver.Args) {
	var bias []T
	if len(a.In) == 3 {
		bias = driver.Of[T](&a.In[2])
	}
	x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	if wide[T](&a.In[1]) {
		kern.ConvForward(a.Threads, convOf(a), x, driver.Of[float32](&a.In[1]), bias, y, a.Work)
	} else {
		kern.ConvForward(a.Threads, convOf(a), x, driver.Of[T](&a.In[1]), bias, y, a.Work)
	}
}

// convData: dy, w.
func convData[T kern.Elem](a *driver.Args) {
	dy, dx := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	if wide[T](&a.In[1]) {
		kern.ConvBackwardData(a.Threads, convDataOf(a), dy, driver.Of[float32](&a.In[1]), dx, a.Work)
	} else {
		kern.ConvBackwardData(a.Threads, convDataOf(a), dy, driver.Of[T](&a.In[1]), dx, a.Work)
	}
}

// convWeights: x, dy.
func convWeights[T kern.Elem](a *driver.Args) {
	x, dy := driver.Of[T](&a.In[0]), driver.Of[T](&a.In[1])
	if wide[T](&a.Out[0]) {
		kern.ConvBackwardWeights(a.Threads, convWeightsOf(a), x, dy, driver.Of[float32](&a.Out[0]), a.Work)
	} else {
		kern.ConvBackwardWeights(a.Threads, convWeightsOf(a), x, dy, driver.Of[T](&a.Out[0]), a.Work)
	}
}

// convWeightsAdd: x, dy; adds to the output, which has no 16 bits.
func convWeightsAdd[T kern.Elem](a *driver.Args) {
	x, dy := driver.Of[T](&a.In[0]), driver.Of[T](&a.In[1])
	if wide[T](&a.Out[0]) {
		kern.ConvAddWeights(a.Threads, convWeightsOf(a), x, dy, driver.Of[float32](&a.Out[0]), a.Work)
	} else {
		kern.ConvAddWeights(a.Threads, convWeightsOf(a), x, dy, driver.Of[T](&a.Out[0]), a.Work)
	}
}
