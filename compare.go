package snug

import "fmt"

// The comparisons of x and y, broadcast, are Bool tensors, without a gradient. Both have
// one type, a float, an integer or Bool; nothing compares with NaN but NotEqual.

func (x *Tensor) Equal(y Operand) *Tensor        { return x.compare("equal", y, false) }
func (x *Tensor) NotEqual(y Operand) *Tensor     { return x.compare("not equal", y, false) }
func (x *Tensor) Less(y Operand) *Tensor         { return x.compare("less", y, false) }
func (x *Tensor) LessEqual(y Operand) *Tensor    { return x.compare("less or equal", y, false) }
func (x *Tensor) Greater(y Operand) *Tensor      { return x.compare("less", y, true) }
func (x *Tensor) GreaterEqual(y Operand) *Tensor { return x.compare("less or equal", y, true) }

// compare has y before x where it is swapped.
func (x *Tensor) compare(kernel string, y Operand, swap bool) *Tensor {
	return Apply(&Op{
		Name:  "comparison",
		Shape: broadcastShape,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			a, b := in[0], in[1]
			if swap {
				a, b = b, a
			}
			shape, _ := broadcast(a.shape, b.shape)
			return c.RunAs(kernel, Bool, shape, nil, a, b)
		},
	}, x, y)
}

// Not is true where x, a Bool tensor, is false.
func (x *Tensor) Not() *Tensor {
	return Apply(&Op{Name: "not", Forward: func(c *Call, in ...*Tensor) *Tensor {
		c.mask(in[0])
		return c.Run("not", in[0].shape, nil, in[0])
	}}, x)
}

// mask checks that t is a Bool tensor.
func (c *Call) mask(t *Tensor) {
	if t.dtype != Bool {
		c.s.fail(c.e.site, fmt.Errorf("%w: a mask of %s, %s wanted", ErrDType, t.dtype, Bool))
	}
}
