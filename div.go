package snug

// Div is x/y, element by element, broadcast. With q the quotient the gradients are
// dx = dq/y and dy = −dq·q/y, summed onto the smaller shape; x itself is not saved.
func (x *Tensor) Div(y Operand) *Tensor { return Apply(&div, x, y) }

// DivInPlace writes x/y into x, whose shape must be the result's, and returns x.
func (x *Tensor) DivInPlace(y Operand) *Tensor { return Apply(&divInPlace, x, y) }

var div = Op{
	Name:      "div",
	precision: widest,
	Shape:     broadcastShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		q := c.Run("div", c.out, nil, in...)
		saveQuotient(c, q, in)
		return q
	},
	Backward: divBackward,
}

var divInPlace = Op{
	Name:      "div in place",
	precision: likeFirst,
	InPlace:   true,
	Shape:     inPlaceShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		c.Launch("div", nil, in[:1], in...)
		saveQuotient(c, in[0], in)
		return in[0]
	},
	Backward: divBackward,
}

func saveQuotient(c *Call, q *Tensor, in []*Tensor) {
	c.Save("y", in[1])
	if c.wanted(in[1]) {
		c.Save("q", q)
	}
}

func divBackward(c *Call, dq *Tensor) []*Tensor {
	d := c.gradients()
	if c.Needs(0) {
		d[0] = c.sumTo(c.Run("div", dq.shape, nil, dq, c.Saved("y")), c.Shape(0))
	}
	if c.Needs(1) {
		d[1] = c.sumTo(c.Run("div backward", dq.shape, nil, c.Saved("q"), c.Saved("y"), dq), c.Shape(1))
	}
	return d
}
