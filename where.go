package snug

import "fmt"

// Where is a where cond, a Bool tensor, is true, and b elsewhere, all broadcast. It saves
// cond: the gradient goes to the one that was taken.
func Where(cond, a, b Operand) *Tensor { return Apply(&where, a, b, cond) }

var where = Op{
	Name:      "where",
	precision: widest,
	Shape:     broadcastShape,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		if c.mask(in[2]); in[0].dtype != in[1].dtype {
			c.s.fail(c.e.site, fmt.Errorf("%w: %s and %s", ErrDType, in[0].dtype, in[1].dtype))
		}
		c.Save("cond", in[2])
		return c.Run("where", c.out, nil, in...)
	},
	Backward: func(c *Call, dy *Tensor) []*Tensor {
		return append(c.choose(dy, c.Saved("cond")), nil)
	},
}

// choose gives two inputs dy where cond says that they were taken.
func (c *Call) choose(dy, cond *Tensor) []*Tensor {
	d := make([]*Tensor, 2)
	for i := range d {
		if c.Needs(i) {
			d[i] = c.sumTo(c.fillMasked(dy, cond, 0, i == 1), c.Shape(i))
		}
	}
	return d
}

// fillMasked is x, but value where the mask is as when says.
func (c *Call) fillMasked(x, mask *Tensor, value float64, when bool) *Tensor {
	return c.Run("masked fill", x.shape, maskedFill(value, when), x, mask)
}

func maskedFill(value float64, when bool) []float64 {
	if when {
		return []float64{value, 1}
	}
	return []float64{value, 0}
}

// MaskedFill is x, but value where mask, a Bool tensor that is broadcast to x, is true. It
// saves the mask.
func (x *Tensor) MaskedFill(mask Operand, value float64) *Tensor {
	return x.fill("masked fill", mask, value, false)
}

// MaskedFillInPlace overwrites x and returns it.
func (x *Tensor) MaskedFillInPlace(mask Operand, value float64) *Tensor {
	return x.fill("masked fill in place", mask, value, true)
}

func (x *Tensor) fill(name string, mask Operand, value float64, inPlace bool) *Tensor {
	return Apply(&Op{
		Name:    name,
		InPlace: inPlace,
		Shape:   inPlaceShape,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			c.mask(in[1])
			c.Save("mask", in[1])
			if inPlace {
				c.Launch("masked fill", maskedFill(value, true), in[:1], in...)
				return in[0]
			}
			return c.fillMasked(in[0], in[1], value, true)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			return c.gradient(c.fillMasked(dy, c.Saved("mask"), 0, true))
		},
	}, x, mask)
}

// Maximum is the greater of x and y, broadcast. It saves a Bool:
// the gradient goes to the one that was taken, x where they are equal.
func (x *Tensor) Maximum(y Operand) *Tensor { return Apply(extremum("maximum", 1, 0), x, y) }

// Minimum is the smaller of x and y, broadcast; else as Maximum.
func (x *Tensor) Minimum(y Operand) *Tensor { return Apply(extremum("minimum", 0, 1), x, y) }

// extremum takes x where in[small] ≤ in[great].
func extremum(name string, small, great int) *Op {
	return &Op{
		Name:      name,
		precision: widest,
		Shape:     broadcastShape,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			x := c.RunAs("less or equal", Bool, c.out, nil, in[small], in[great])
			c.Save("x", x)
			return c.Run("where", c.out, nil, in[0], in[1], x)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor { return c.choose(dy, c.Saved("x")) },
	}
}
