package snug

import (
	"fmt"
	"slices"
)

// Linear is x·wᵀ + b for x [… in], w [out in] and b [out], which may be nil: [… out].
// The gradients are dx = dy·w, dw = dyᵀ·x and db = Σ dy.
func (x *Tensor) Linear(w, b Operand) *Tensor {
	if b == nil {
		return Apply(&linear, x, w)
	}
	return Apply(&linear, x, w, b)
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
		y := c.New(x.dtype, []int{x.shape[0], in[1].shape[0]})
		c.Launch("matmul", nil, []*Tensor{y}, append([]*Tensor{x, c.transposed(in[1])}, in[2:]...)...)
		shape, _ := c.e.op.Shape(c.e.shapes...)
		return c.reshape(y, shape)
	},
	Backward: func(c *Call, dy *Tensor) []*Tensor {
		d := make([]*Tensor, len(c.e.shapes))
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
	return c.reshape(t, []int{numel(t.shape[:len(t.shape)-1]), last})
}
