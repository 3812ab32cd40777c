package snug

import (
	"fmt"
	"slices"
)

// Cat puts tensors one after the other along one dimension; the others are equal. The
// gradients are views of dy.
func Cat(dim int, x ...*Tensor) *Tensor {
	in := make([]Operand, len(x))
	for i, t := range x {
		in[i] = t
	}
	at := func(shape []int) int { i, _ := axis(dim, shape); return i }
	return Apply(&Op{
		Name:      "cat",
		precision: widest,
		Shape: func(in ...[]int) ([]int, error) {
			i, err := axis(dim, in[0])
			if err != nil {
				return in[0], err
			}
			out := slices.Clone(in[0])
			for _, s := range in[1:] {
				if len(s) != len(out) || !slices.Equal(s[:i], out[:i]) || !slices.Equal(s[i+1:], out[i+1:]) {
					return out, fmt.Errorf("%w: %v along dimension %d", ErrShape, in, i)
				}
				out[i] += s[i]
			}
			return out, nil
		},
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			shape, _ := c.e.op.Shape(c.e.shapes...)
			y, from := c.New(in[0].dtype, shape), 0
			for i, t := range in {
				if t.dtype != y.dtype {
					c.s.fail(c.e.site, fmt.Errorf("%w: %s and %s", ErrDType, y.dtype, t.dtype))
				}
				c.Launch("copy", nil, []*Tensor{c.narrow(y, at(shape), from, c.Shape(i))}, t)
				from += t.shape[at(shape)]
			}
			return y
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			d, from := make([]*Tensor, len(in)), 0
			for i := range d {
				if c.Needs(i) {
					d[i] = c.narrow(dy, at(dy.shape), from, c.Shape(i))
				}
				from += c.Shape(i)[at(dy.shape)]
			}
			return d
		},
	}, in...)
}

// narrow is the part of t that begins at from of one dimension and has shape.
func (c *Call) narrow(t *Tensor, dim, from int, shape []int) *Tensor {
	return c.view(t, shape, t.strides, from*t.strides[dim])
}

// Stack puts tensors of equal shapes side by side along a new dimension.
func Stack(dim int, x ...*Tensor) *Tensor {
	in := make([]*Tensor, len(x))
	for i, t := range x {
		if in[i] = t; t != nil { // Cat says which one is
			in[i] = t.Unsqueeze(dim)
		}
	}
	return Cat(dim, in...)
}

// Split cuts a dimension into views of the given lengths, which make up all of it.
func (x *Tensor) Split(dim int, lengths ...int) []*Tensor {
	sum, parts := 0, make([]*Tensor, len(lengths))
	for _, n := range lengths {
		sum += n
	}
	if i, err := axis(dim, x.shape); err == nil && sum != x.shape[i] {
		x.s.Fail("split", fmt.Errorf("%w: lengths %v of dimension %d of %v", ErrShape, lengths, i, x.shape))
	}
	from := 0
	for i, n := range lengths {
		parts[i] = x.Narrow(dim, from, n)
		from += n
	}
	return parts
}

// Chunk cuts a dimension into n views of equal length, into which it has to divide.
func (x *Tensor) Chunk(dim, n int) []*Tensor {
	lengths := make([]int, max(0, n))
	for i := range lengths {
		lengths[i] = x.Dim(dim) / n
	}
	return x.Split(dim, lengths...)
}
