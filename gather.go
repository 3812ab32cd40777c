package snug

import (
	"fmt"
	"slices"
)

// IndexSelect is the slices of one dimension that index names, a vector of Int64 or Int32,
// in its order. It saves the indices: a slice's gradient is the sum of those of its uses.
func (x *Tensor) IndexSelect(dim int, index *Tensor) *Tensor {
	if index == nil {
		return x.s.lacking("index select", 2, 2)
	}
	l, err := x.along(dim)
	shape := x.shape
	if len(index.shape) != 1 && err == nil {
		err = fmt.Errorf("%w: index %v, a vector wanted", ErrShape, index.shape)
	}
	if err == nil {
		i, _ := axis(dim, x.shape)
		shape = slices.Concat(x.shape[:i], index.shape, x.shape[i+1:])
	}
	return x.gather("index select", index, l, shape, err)
}

// Gather takes one element along dim for each element of index, an Int64 or Int32 tensor of
// x's shape but for that dimension: y[i][j] = x[i][index[i][j]] for matrices and dim 1. It
// saves the indices: an element's gradient is the sum of those of its uses.
func (x *Tensor) Gather(dim int, index *Tensor) *Tensor {
	if index == nil {
		return x.s.lacking("gather", 2, 2)
	}
	l, err := x.along(dim)
	if err == nil {
		i, _ := axis(dim, x.shape)
		if s := index.shape; len(s) != len(x.shape) || !slices.Equal(s[:i], x.shape[:i]) || !slices.Equal(s[i+1:], x.shape[i+1:]) {
			err = fmt.Errorf("%w: index %v for dimension %d of %v", ErrShape, s, i, x.shape)
		}
	}
	return x.gather("gather", index, l, index.shape, err)
}

func (x *Tensor) gather(name string, index *Tensor, l lanes, shape []int, err error) *Tensor {
	return Apply(&Op{
		Name:  name,
		Shape: func(...[]int) ([]int, error) { return shape, err },
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			c.checkIndex(in[1], l.n)
			c.Save("index", in[1])
			return c.Run(name, shape, l.numbers(), in...)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			return c.gradient(c.Run(name+" backward", c.Shape(0), l.numbers(), dy, c.Saved("index")))
		},
	}, x, index)
}
