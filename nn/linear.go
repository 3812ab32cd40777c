package nn

import (
	"math"

	"github.com/snug-ml/snug"
)

// Linear is x·weightᵀ + bias over x's last dimension: [… in] to [… out].
type Linear struct {
	Weight *snug.Param // [out in]
	Bias   *snug.Param // [out]; nil: none
}

// NewLinear draws weight and bias from ±1/√in, as PyTorch does.
func NewLinear(in, out int, bias bool) *Linear {
	l := &Linear{Weight: snug.NewParam(snug.KaimingUniform(math.Sqrt(5)), out, in)}
	if bias {
		l.Bias = newBias(out, in)
	}
	return l
}

func (l *Linear) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		return x.Linear(l.Weight, optional(l.Bias))
	}, x)
}

func newBias(n, fanIn int) *snug.Param {
	return snug.NewParam(snug.Uniform(1/math.Sqrt(float64(max(1, fanIn)))), n)
}

// optional keeps a missing parameter from being an operand that holds a nil pointer.
func optional(p *snug.Param) snug.Operand {
	if p == nil {
		return nil
	}
	return p
}
