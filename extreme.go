package snug

import (
	"fmt"
	"slices"
)

// Max is the greatest element along one dimension, which vanishes; NaN if there is one. It
// saves where the first of them stood, to which the gradient goes.
func (x *Tensor) Max(dim int) *Tensor { return x.extreme("max", dim) }

// Min is the smallest element along one dimension; else as Max.
func (x *Tensor) Min(dim int) *Tensor { return x.extreme("min", dim) }

// ArgMax is where along one dimension the first greatest element stands, as Int64.
func (x *Tensor) ArgMax(dim int) *Tensor {
	l, err := x.some(dim)
	return Apply(&Op{
		Name:  "argmax",
		Shape: func(...[]int) ([]int, error) { return l.rest, err },
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			values, at := c.New(in[0].dtype, l.rest), c.New(Int64, l.rest)
			c.Launch("max", l.numbers(), []*Tensor{values, at}, in[0])
			return at
		},
	}, x)
}

func (x *Tensor) extreme(name string, dim int) *Tensor {
	l, err := x.some(dim)
	return Apply(&Op{
		Name:  name,
		Shape: func(...[]int) ([]int, error) { return l.rest, err },
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			y, at := c.New(in[0].dtype, l.rest), c.New(Int32, l.rest)
			c.Launch(name, l.numbers(), []*Tensor{y, at}, in[0])
			c.Save("at", at)
			return y
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			return c.gradient(c.Run("extreme backward", c.Shape(0), l.numbers(), dy, c.Saved("at")))
		},
	}, x)
}

// some are lanes of at least one element.
func (x *Tensor) some(dim int) (lanes, error) {
	l, err := x.along(dim)
	if err == nil && l.n == 0 && numel(l.rest) > 0 {
		err = fmt.Errorf("%w: dimension %d of %v has no elements", ErrShape, dim, x.shape)
	}
	return l, err
}

// lanes are the elements along one dimension: n of them, inner apart, in each lane.
type lanes struct {
	rest     []int // the other dimensions
	n, inner int
}

func (l lanes) numbers() []float64 { return []float64{float64(l.n), float64(l.inner)} }

// along are the lanes of one dimension.
func (x *Tensor) along(dim int) (lanes, error) {
	i, err := axis(dim, x.shape)
	if err != nil {
		return lanes{rest: x.shape}, err
	}
	return lanes{slices.Delete(slices.Clone(x.shape), i, i+1), x.shape[i], numel(x.shape[i+1:])}, nil
}
