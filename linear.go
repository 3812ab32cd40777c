package snug

import (
	"fmt"
	"slices"
)

// Linear is x·wᵀ + b for x [… in], w [out in] and b [out], which may be nil: [… out].
// The gradients are dx = dy·w, dw = dyᵀ·x and db = Σ dy.
func (x *Tensor) Linear(w, b Operand) *Tensor {
	return x.withBias(&linear, w, b)
}

// withBias applies op to x, w and a bias that there may be none of.
func (x *Tensor) withBias(op *Op, w, bias Operand) *Tensor {
	if bias == nil {
		return Apply(op, x, w)
	}
	return Apply(op, x, w, bias)
}

var linear = Op{
	Name:      "linear",
	precision: low,
	cost:      costOfRows,
	Shape: func(in ...[]int) ([]int, error) {
		x, w := in[0], in[1]
		if len(w) != 2 || len(x) == 0 || x[len(x)-1] != w[1] {
			return x, fmt.Errorf("%w: x %v and weight %v", ErrShape, x, w)
		}
		if len(in) == 3 && !slices.Equal(in[2], w[:1]) {
			return x, fmt.Errorf("%w: weight %v and bias %v", ErrShape, w, in[2])
		}
		return append(slices.Clone(x[:len(x)-1]), w[0]), nil
	},
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		c.Save("x", in[0])
		c.Save("w", in[1])
		x := c.rows(in[0])
		y := c.New(x.dtype, c.dims(x.shape[0], in[1].shape[0]))
		c.Launch("matmul", nil, []*Tensor{y}, append([]*Tensor{x, c.transposed(in[1])}, in[2:]...)...)
		return c.reshape(y, c.out)
	},
	Backward: func(c *Call, dy *Tensor) []*Tensor {
		d := c.gradients()
		dy = c.rows(dy)
		if c.Needs(1) {
			x := c.Saved("x")
			rows := c.rows(x)
			c.give(1, c.matmul(c.transposed(dy), rows))
			c.done(rows)
			c.done(x)
		}
		if c.Needs(0) {
			d[0] = c.reshape(c.matmul(dy, c.Saved("w")), c.Shape(0))
		}
		if len(d) == 3 && c.Needs(2) {
			d[2] = c.sumTo(dy, c.Shape(2))
		}
		return d
	},
}

// rows is t as a matrix of its last dimension.
func (c *Call) rows(t *Tensor) *Tensor {
	last := t.shape[len(t.shape)-1]
	return c.reshape(t, c.dims(numel(t.shape[:len(t.shape)-1]), last))
}
