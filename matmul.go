package snug

import (
	"fmt"
	"slices"
)

// MatMul is x·w over the last two dimensions, [… m k]·[… k n] = [… m n]; leading ones
// are broadcast. A vector x is one row and a vector w one column, and the result has no
// such dimension. With y = x·w the gradients are dx = dy·wᵀ and dw = xᵀ·dy.
func (x *Tensor) MatMul(w Operand) *Tensor {
	wt := operand(w, x.s)
	switch {
	case wt == nil:
		return x.s.lacking("matmul", 2, 2)
	case len(x.shape) == 1 && len(wt.shape) == 1:
		return x.Reshape(1, -1).MatMul(wt.Reshape(-1, 1)).Reshape()
	case len(x.shape) == 1:
		y := x.Reshape(1, -1).MatMul(wt)
		return y.Reshape(slices.Delete(y.Shape(), len(y.shape)-2, len(y.shape)-1)...)
	case len(wt.shape) == 1 && len(x.shape) > 1:
		y := x.MatMul(wt.Reshape(-1, 1))
		return y.Reshape(y.Shape()[:len(y.shape)-1]...)
	}
	return Apply(&matmul, x, w)
}

var matmul = Op{
	Name:      "matmul",
	precision: low,
	cost:      costOfRows,
	Shape:     matmulShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		c.Save("x", in[0])
		c.Save("w", in[1])
		return c.matmul(in[0], in[1])
	},
	Backward: func(c *Call, dy *Tensor) []*Tensor {
		var dx, dw *Tensor
		if c.Needs(0) {
			dx = c.sumTo(c.matmul(dy, c.transposed(c.Saved("w"))), c.Shape(0))
		}
		if c.Needs(1) {
			x := c.Saved("x")
			if w := c.Shape(1); len(w) == 2 && len(x.shape) > 2 { // one product over all rows
				x, dy = c.rows(x), c.rows(dy)
			}
			dw = c.sumTo(c.matmul(c.transposed(x), dy), c.Shape(1))
		}
		return []*Tensor{dx, dw}
	},
}

func matmulShape(in ...[]int) ([]int, error) {
	x, w := in[0], in[1]
	i, j := len(x)-2, len(w)-2
	if i < 0 || j < 0 {
		return x, fmt.Errorf("%w: x %v and w %v, two matrices wanted", ErrShape, x, w)
	}
	lead, err := broadcast(x[:i], w[:j])
	if err != nil || x[i+1] != w[j] {
		err = fmt.Errorf("%w: x %v and w %v", ErrShape, x, w)
	}
	return append(slices.Clone(lead), x[i], w[j+1]), err
}

// transposed is a view with the last two dimensions exchanged.
func (c *Call) transposed(t *Tensor) *Tensor {
	n := len(t.shape)
	shape, strides := c.dims(t.shape...), c.dims(t.strides...)
	shape[n-2], shape[n-1] = shape[n-1], shape[n-2]
	strides[n-2], strides[n-1] = strides[n-1], strides[n-2]
	return c.view(t, shape, strides, 0)
}

// matmul multiplies matrices of any strides; leading dimensions of length 1 serve all.
func (c *Call) matmul(x, w *Tensor) *Tensor {
	shape, _ := matmulShape(x.shape, w.shape)
	return c.Run("matmul", shape, nil, x, w)
}
