package snug

// Sub is x − y, broadcast. It saves nothing: dy and −dy are the gradients, summed onto the
// smaller shape.
func (x *Tensor) Sub(y Operand) *Tensor { return Apply(&sub, x, y) }

// SubInPlace writes x − y into x, whose shape must be the result's, and returns x.
func (x *Tensor) SubInPlace(y Operand) *Tensor { return Apply(&subInPlace, x, y) }

var sub = Op{
	Name:      "sub",
	precision: widest,
	Shape:     broadcastShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		return c.Run("sub", c.out, nil, in...)
	},
	Backward: subBackward,
}

var subInPlace = Op{
	Name:      "sub in place",
	precision: likeFirst,
	InPlace:   true,
	Shape:     inPlaceShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		c.Launch("sub", nil, in[:1], in...)
		return in[0]
	},
	Backward: subBackward,
}

func subBackward(c *Call, dy *Tensor) []*Tensor {
	d := addBackward(c, dy)
	if c.Needs(1) {
		d[1] = c.Run("scale", d[1].shape, []float64{-1}, d[1])
	}
	return d
}
