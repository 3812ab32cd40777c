package snug

import (
	"fmt"
	"slices"
)

// Add is x + y, broadcast. It saves nothing: dx and dy are the gradient, summed onto the
// smaller shape.
func (x *Tensor) Add(y Operand) *Tensor { return Apply(&add, x, y) }

// AddInPlace writes x + y into x, whose shape must be the result's, and returns x.
func (x *Tensor) AddInPlace(y Operand) *Tensor { return Apply(&addInPlace, x, y) }

var add = Op{
	Name:      "add",
	precision: widest,
	Shape:     broadcastShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		return c.Run("add", c.out, nil, in...)
	},
	Backward: addBackward,
}

var addInPlace = Op{
	Name:      "add in place",
	precision: likeFirst,
	InPlace:   true,
	Shape:     inPlaceShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		c.Launch("add", nil, in[:1], in...)
		return in[0]
	},
	Backward: addBackward,
}

func addBackward(c *Call, dy *Tensor) []*Tensor {
	d := c.gradients()
	for i := range d {
		if c.Needs(i) {
			d[i] = c.sumTo(dy, c.Shape(i))
		}
	}
	return d
}

// inPlaceShape is the first input's, to which the others are broadcast.
func inPlaceShape(in ...[]int) ([]int, error) {
	shape, err := broadcastShape(in...)
	if err == nil && !slices.Equal(shape, in[0]) {
		err = fmt.Errorf("%w: %v has no room for %v", ErrShape, in[0], shape)
	}
	return in[0], err
}
