package nn

import (
	"math"

	"github.com/snug-ml/snug"
)

// Linear is x·Weight + Bias for x [n in]: [n out].
type Linear struct{ Weight, Bias *snug.Param }

func NewLinear(in, out int) *Linear {
	bound := 1 / math.Sqrt(float64(in))
	return &Linear{
		Weight: snug.NewParam(snug.Uniform(bound), in, out),
		Bias:   snug.NewParam(snug.Uniform(bound), out),
	}
}

func (l *Linear) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor { return x.MatMul(l.Weight).Add(l.Bias) }, x)
}

// NormReLU is batch norm followed by ReLU, for x [n c]. In training mode it uses the
// batch's statistics and moves the running ones by Momentum once the scope succeeds;
// frozen it does neither.
type NormReLU struct {
	Weight, Bias, RunningMean, RunningVar, NumBatchesTracked *snug.Param
	Momentum, Eps                                            float64
}

func NewNormReLU(c int) *NormReLU {
	return &NormReLU{
		Weight: snug.NewParam(snug.Const(1), c), Bias: snug.NewParam(snug.Const(0), c),
		RunningMean: snug.NewBuffer(snug.Const(0), c), RunningVar: snug.NewBuffer(snug.Const(1), c),
		NumBatchesTracked: snug.NewBuffer(snug.Const(0), 1), Momentum: 0.1, Eps: 1e-5,
	}
}

func (l *NormReLU) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		s := x.Scope()
		mean, variance := l.RunningMean.In(s), l.RunningVar.In(s)
		batch := s.Training() && !l.RunningMean.Frozen()
		if batch {
			m, v := x.MeanVariance()
			n := float64(x.Dim(0))
			l.RunningMean.Assign(mean.Lerp(m, l.Momentum, 1))
			l.RunningVar.Assign(variance.Lerp(v, l.Momentum, n/max(1, n-1)))
			l.NumBatchesTracked.Assign(l.NumBatchesTracked.In(s).Add(snug.Upload(s, []float32{1}, 1)))
			mean, variance = m, v
		}
		return x.NormReLU(mean, variance, l.Weight, l.Bias, l.Eps, batch)
	}, x)
}
