package snug

import (
	"fmt"
	"slices"
)

// LayerNorm normalizes x over its last dimensions, those of weight and bias, and gives
// (x − mean)/√(variance + eps)·weight + bias (Ba et al., 2016). It saves and computes what
// GroupNorm does, with one group whose channels are single elements.
func (x *Tensor) LayerNorm(weight, bias Operand, eps float64) *Tensor {
	return Apply(opOf(x.s, layerNorm{eps}), x, weight, bias)
}

type layerNorm struct{ eps float64 }

func (l layerNorm) op() *Op {
	return &Op{
		Name:      "layer norm",
		precision: firstApart,
		Shape: func(in ...[]int) ([]int, error) {
			x, w := in[0], in[1]
			if len(w) == 0 || len(w) > len(x) || !slices.Equal(w, x[len(x)-len(w):]) {
				return x, fmt.Errorf("%w: x %v and weight %v, x's last dimensions wanted", ErrShape, x, w)
			}
			return x, fitNorm(x, w, w, in[2])
		},
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			return c.groupNorm(in, c.layerRows(in[0].shape, in[1].shape), 1, l.eps)
		},
		Remake: func(c *Call) *Tensor { return c.groupNormAgain(c.layerRows(c.Shape(0), c.Shape(1)), 1, l.eps) },
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			return c.groupNormBackward(dy, c.layerRows(c.Shape(0), c.Shape(1)), 1)
		},
	}
}

// layerRows is x as a matrix whose rows are normalized.
func (c *Call) layerRows(x, weight []int) []int {
	return c.dims(numel(x[:len(x)-len(weight)]), numel(weight))
}
