package snug

import (
	"fmt"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
)

// A layout is where a view's elements lie: strides and an offset, in elements.
type layout struct {
	shape, strides []int
	off            int
}

// viewOp makes an operation whose result shares x's storage. back gives dx from dy.
func (x *Tensor) viewOp(name string, to func(x *Tensor) (layout, error), back func(c *Call, dy *Tensor) *Tensor) *Tensor {
	l, err := to(x)
	return Apply(&Op{
		Name:  name,
		Shape: func(...[]int) ([]int, error) { return l.shape, err },
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			return c.view(in[0], l.shape, l.strides, l.off)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor { return c.gradient(back(c, dy)) },
	}, x)
}

// scatter is the gradient of a view that leaves elements out: dy where they were read
// and 0 elsewhere.
func (c *Call) scatter(dy *Tensor, to func(x *Tensor) (layout, error)) *Tensor {
	dx := c.New(dy.dtype, c.Shape(0))
	c.Launch("fill", []float64{0}, []*Tensor{dx})
	if l, err := to(dx); err == nil {
		c.Launch("copy", nil, []*Tensor{c.view(dx, l.shape, l.strides, l.off)}, dy)
	}
	return dx
}

// Reshape is the same values under another shape; one dimension may be -1. It is a view
// where x has no gaps, and else a copy.
func (x *Tensor) Reshape(shape ...int) *Tensor {
	shape, err := reshaped(x.shape, shape)
	return Apply(&Op{
		Name:  "reshape",
		Shape: func(...[]int) ([]int, error) { return shape, err },
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			return c.reshape(in[0], shape)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor { return c.gradient(c.reshape(dy, c.Shape(0))) },
	}, x)
}

func (c *Call) reshape(x *Tensor, shape []int) *Tensor {
	if x.contiguous() {
		return c.view(x, shape, c.s.rowMajor(shape), 0)
	}
	if strides := restride(x.shape, x.strides, shape); strides != nil {
		return c.view(x, shape, strides, 0)
	}
	dense := c.Run("copy", x.shape, nil, x)
	return c.view(dense, shape, c.s.rowMajor(shape), 0)
}

// restride is how shape lies over x's elements without a copy, nil where it cannot.
func restride(from, strides, shape []int) []int {
	f, st := driver.Collapse(from, strides)
	out := make([]int, len(shape))
	i := len(shape) - 1
	for k := len(f) - 1; k >= 0; k-- { // each collapsed run is cut into dimensions
		n, step := f[k], st[k]
		for ; i >= 0 && (n > 1 || shape[i] == 1); i-- {
			if n%shape[i] != 0 {
				return nil
			}
			out[i] = step
			step *= shape[i]
			n /= shape[i]
		}
		if n > 1 {
			return nil
		}
	}
	for ; i >= 0; i-- {
		if shape[i] != 1 {
			return nil
		}
	}
	return out
}

func reshaped(from, shape []int) ([]int, error) {
	want := slices.Clone(shape)
	n, open := 1, -1
	for i, d := range shape {
		switch {
		case d >= 0:
			n *= d
		case d == -1 && open < 0:
			open = i
		default:
			return slices.Clone(from), fmt.Errorf("%w: %v into %v", ErrShape, from, want)
		}
	}
	shape = slices.Clone(shape)
	if open >= 0 {
		shape[open] = numel(from) / max(1, n)
	}
	if numel(shape) != numel(from) || checkShape(shape) != nil {
		return shape, fmt.Errorf("%w: %v into %v", ErrShape, from, want)
	}
	return shape, nil
}

// Flatten joins the dimensions from the given one on into one.
func (x *Tensor) Flatten(from int) *Tensor {
	if from < 0 || from > len(x.shape) {
		x.s.Fail("flatten", fmt.Errorf("%w: no dimension %d in %v", ErrShape, from, x.shape))
		return x.s.blank(x.dtype, x.shape)
	}
	return x.Reshape(append(slices.Clone(x.shape[:from]), numel(x.shape[from:]))...)
}

// Permute is a view with the dimensions in the given order.
func (x *Tensor) Permute(order ...int) *Tensor {
	back := make([]int, len(order))
	to := func(x *Tensor) (layout, error) {
		l := layout{shape: slices.Clone(x.shape), strides: slices.Clone(x.strides)}
		all, err := axes(order, x.shape)
		if err != nil || len(all) != len(x.shape) || len(order) != len(x.shape) {
			return l, fmt.Errorf("%w: %v in the order %v", ErrShape, x.shape, order)
		}
		for i, d := range order {
			d, _ = axis(d, x.shape)
			l.shape[i], l.strides[i] = x.shape[d], x.strides[d]
			back[d] = i
		}
		return l, nil
	}
	return x.viewOp("permute", to, func(c *Call, dy *Tensor) *Tensor { return c.permuted(dy, back) })
}

// Transpose is a view with two dimensions exchanged.
func (x *Tensor) Transpose(a, b int) *Tensor {
	order := make([]int, len(x.shape))
	for i := range order {
		order[i] = i
	}
	i, err := axis(a, x.shape)
	j, err2 := axis(b, x.shape)
	if err == nil {
		err = err2
	}
	if err != nil {
		x.s.Fail("transpose", err)
		return x.s.blank(x.dtype, x.shape)
	}
	order[i], order[j] = order[j], order[i]
	return x.Permute(order...)
}

// T is a view with the last two dimensions exchanged.
func (x *Tensor) T() *Tensor { return x.Transpose(-2, -1) }

// Range selects From, From+Step, … below To in one dimension. The zero Step is 1, and a
// To of 0 the dimension's end; From and To count from the end where they are negative.
type Range struct{ From, To, Step int }

// All is the whole dimension.
var All = Range{}

// Slice is a view of a part of each dimension, in order; those not named are whole.
func (x *Tensor) Slice(parts ...Range) *Tensor {
	to := func(x *Tensor) (layout, error) {
		l := layout{shape: slices.Clone(x.shape), strides: slices.Clone(x.strides)}
		if len(parts) > len(x.shape) {
			return l, fmt.Errorf("%w: %d ranges for %v", ErrShape, len(parts), x.shape)
		}
		for i, r := range parts {
			d := x.shape[i]
			from, end, step := r.From, r.To, max(1, r.Step)
			if from < 0 {
				from += d
			}
			if end <= 0 {
				end += d
			}
			if r.Step < 0 || from < 0 || end > d || from > end {
				return l, fmt.Errorf("%w: %d to %d in steps of %d of dimension %d of %v", ErrShape, r.From, r.To, r.Step, i, x.shape)
			}
			l.shape[i] = (end - from + step - 1) / step
			l.off += from * l.strides[i]
			l.strides[i] *= step
		}
		return l, nil
	}
	return x.viewOp("slice", to, func(c *Call, dy *Tensor) *Tensor { return c.scatter(dy, to) })
}

// Narrow is a view of length elements of one dimension, from start on.
func (x *Tensor) Narrow(dim, start, length int) *Tensor {
	to := func(x *Tensor) (layout, error) {
		l := layout{shape: slices.Clone(x.shape), strides: slices.Clone(x.strides)}
		i, err := axis(dim, x.shape)
		if err != nil {
			return l, err
		}
		l.shape[i] = max(0, length)
		if start < 0 || length < 0 || length > x.shape[i]-start {
			return l, fmt.Errorf("%w: %d elements from %d of dimension %d of %v", ErrShape, length, start, dim, x.shape)
		}
		if length > 0 {
			l.off = start * l.strides[i]
		}
		return l, nil
	}
	return x.viewOp("narrow", to, func(c *Call, dy *Tensor) *Tensor { return c.scatter(dy, to) })
}

// Expand is a view in which dimensions of length 1, and new leading ones, are repeated.
func (x *Tensor) Expand(shape ...int) *Tensor {
	shape = slices.Clone(shape)
	to := func(x *Tensor) (layout, error) {
		both, err := broadcast(x.shape, shape)
		if err != nil || checkShape(shape) != nil || !slices.Equal(both, shape) {
			return layout{shape: shape, strides: driver.RowMajor(shape)}, fmt.Errorf("%w: %v does not expand to %v", ErrShape, x.shape, shape)
		}
		e := driver.Expand(&driver.Array{Shape: x.shape, Strides: x.strides}, shape)
		return layout{shape: shape, strides: e.Strides}, nil
	}
	return x.viewOp("expand", to, func(c *Call, dy *Tensor) *Tensor { return c.sumTo(dy, c.Shape(0)) })
}

// Contiguous is x where its elements lie row-major without gaps, and else such a copy.
func (x *Tensor) Contiguous() *Tensor {
	if x.contiguous() {
		return x
	}
	return Apply(&Op{
		Name:     "contiguous",
		Forward:  func(c *Call, in ...*Tensor) *Tensor { return c.Run("copy", in[0].shape, nil, in[0]) },
		Backward: func(c *Call, dy *Tensor) []*Tensor { return c.gradient(dy) },
	}, x)
}

// Unsqueeze is a view with a new dimension of length 1 at dim.
func (x *Tensor) Unsqueeze(dim int) *Tensor {
	i, err := axis(dim, append(x.Shape(), 1))
	if err != nil {
		x.s.Fail("unsqueeze", err)
	}
	return x.Reshape(slices.Insert(x.Shape(), i, 1)...)
}

// Squeeze is a view without the given dimensions, whose length is 1; without all such for
// none.
func (x *Tensor) Squeeze(dims ...int) *Tensor {
	gone, err := axes(dims, x.shape)
	shape := []int{}
	for i, d := range x.shape {
		if !slices.Contains(gone, i) || len(dims) == 0 && d != 1 {
			shape = append(shape, d)
		} else if d != 1 {
			err = fmt.Errorf("%w: dimension %d of %v is not 1", ErrShape, i, x.shape)
		}
	}
	if err != nil {
		x.s.Fail("squeeze", err)
	}
	return x.Reshape(shape...)
}
