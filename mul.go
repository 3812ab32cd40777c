package snug

import "errors"

// Mul is x·y, element by element, broadcast. The gradients are dx = dy·y and dy·x, summed
// onto the smaller shape.
func (x *Tensor) Mul(y Operand) *Tensor { return Apply(&mul, x, y) }

// MulInPlace writes x·y into x and returns it. Backward needs x as it was: where y wants
// a gradient, use Mul.
func (x *Tensor) MulInPlace(y Operand) *Tensor { return Apply(&mulInPlace, x, y) }

var mul = Op{
	Name:      "mul",
	precision: widest,
	Shape:     broadcastShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		saveProduct(c, in)
		return c.Run("mul", c.out, nil, in...)
	},
	Backward: mulBackward,
}

var mulInPlace = Op{
	Name:      "mul in place",
	precision: likeFirst,
	InPlace:   true,
	Shape:     inPlaceShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		if c.record && in[1].slot != nil {
			c.s.fail(c.e.site, errors.New("the gradient of y needs x as it was: use Mul"))
		}
		saveProduct(c, in)
		c.Launch("mul", nil, in[:1], in...)
		return in[0]
	},
	Backward: mulBackward,
}

// saveProduct saves each factor where the other one wants a gradient.
func saveProduct(c *Call, in []*Tensor) {
	if c.wanted(in[1]) && !c.e.op.InPlace {
		c.Save("x", in[0])
	}
	if c.wanted(in[0]) {
		c.Save("y", in[1])
	}
}

func mulBackward(c *Call, dy *Tensor) []*Tensor {
	d := c.gradients()
	if c.Needs(0) {
		d[0] = c.sumTo(c.Run("mul", dy.shape, nil, dy, c.Saved("y")), c.Shape(0))
	}
	if c.Needs(1) {
		d[1] = c.sumTo(c.Run("mul", dy.shape, nil, dy, c.Saved("x")), c.Shape(1))
	}
	return d
}
