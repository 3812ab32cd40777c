package nn

import (
	"fmt"

	"github.com/snug-ml/snug"
)

// BatchNorm normalizes each channel of x [n c …] over all else: PyTorch's BatchNorm1d, 2d
// and 3d. In training mode it uses the batch's statistics and moves the running ones
// towards them, seen once the scope has succeeded; else, and where it is frozen, it uses
// the running ones.
type BatchNorm struct {
	Weight, Bias            *snug.Param // [c]
	RunningMean, RunningVar *snug.Param // buffers [c]
	NumBatchesTracked       *snug.Param // a buffer: one int64
	Momentum                float64     // how far the running ones move, 0.1
	Eps                     float64     // 1e-5
}

func NewBatchNorm(channels int) *BatchNorm {
	l := &BatchNorm{
		Weight:            snug.NewParam(snug.Const(1), channels),
		Bias:              snug.NewParam(snug.Const(0), channels),
		RunningMean:       snug.NewBuffer(snug.Const(0), channels),
		RunningVar:        snug.NewBuffer(snug.Const(1), channels),
		NumBatchesTracked: snug.NewBuffer(snug.Const(0)),
		Momentum:          0.1,
		Eps:               1e-5,
	}
	l.NumBatchesTracked.SetDType(snug.Int64) // it fails on a device only
	return l
}

func (l *BatchNorm) Forward(x *snug.Tensor) *snug.Tensor {
	return l.forward(x, (*snug.Tensor).BatchNorm)
}

// ForwardReLU is max(0, Forward) in one pass.
func (l *BatchNorm) ForwardReLU(x *snug.Tensor) *snug.Tensor {
	return l.forward(x, (*snug.Tensor).BatchNormReLU)
}

// ForwardReLU6 is Forward, but no less than 0 and no more than 6, in one pass.
func (l *BatchNorm) ForwardReLU6(x *snug.Tensor) *snug.Tensor {
	return l.forward(x, (*snug.Tensor).BatchNormReLU6)
}

// ForwardAdd is Forward(x) + y in one pass, for y of x's shape.
func (l *BatchNorm) ForwardAdd(x, y *snug.Tensor) *snug.Tensor {
	return l.forward(x, func(x *snug.Tensor, mean, variance, weight, bias snug.Operand, eps float64, batch bool) *snug.Tensor {
		return x.BatchNormAdd(y, mean, variance, weight, bias, eps, batch)
	})
}

// ForwardAddReLU is max(0, Forward(x) + y) in one pass, for y of x's shape.
func (l *BatchNorm) ForwardAddReLU(x, y *snug.Tensor) *snug.Tensor {
	return l.forward(x, func(x *snug.Tensor, mean, variance, weight, bias snug.Operand, eps float64, batch bool) *snug.Tensor {
		return x.BatchNormAddReLU(y, mean, variance, weight, bias, eps, batch)
	})
}

type batchNorm func(x *snug.Tensor, mean, variance, weight, bias snug.Operand, eps float64, batch bool) *snug.Tensor

func (l *BatchNorm) forward(x *snug.Tensor, norm batchNorm) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		s := x.Scope()
		if !s.Training() || l.RunningMean.Frozen() {
			return norm(x, l.RunningMean, l.RunningVar, l.Weight, l.Bias, l.Eps, false)
		}
		n := x.Len() / max(1, x.Dim(1))
		if n <= 1 {
			s.Fail("batch norm", fmt.Errorf("%w: x %v, more than one value a channel wanted in training", snug.ErrShape, x.Shape()))
		}
		mean, variance := x.MeanVariance()
		y := norm(x, mean, variance, l.Weight, l.Bias, l.Eps, true)
		move(l.RunningMean, mean, l.Momentum, 1)
		move(l.RunningVar, variance, l.Momentum, float64(n)/float64(n-1)) // to the unbiased one
		l.NumBatchesTracked.Assign(snug.Apply(&count, l.NumBatchesTracked.In(s)))
		return y
	}, x)
}

func move(p *snug.Param, to *snug.Tensor, by, scale float64) {
	p.Assign(p.In(to.Scope()).Lerp(to.Cast(p.DType()), by, scale))
}

var count = snug.Op{
	Name: "count",
	Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
		return c.Run("count", in[0].Shape(), nil, in[0])
	},
}
