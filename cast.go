package snug

// Cast is x in another type, rounded to the nearest; a float becomes an integer by
// dropping its fraction. Between floats the gradient is cast back. It saves nothing.
func (x *Tensor) Cast(to DType) *Tensor {
	if x.dtype == to {
		return x
	}
	from := x.dtype
	op := Op{
		Name:    "cast",
		Forward: func(c *Call, in ...*Tensor) *Tensor { return c.RunAs("cast", to, in[0].shape, nil, in[0]) },
	}
	if from.Float() && to.Float() {
		op.Backward = func(c *Call, dy *Tensor) []*Tensor {
			return c.gradient(c.RunAs("cast", from, dy.shape, nil, dy))
		}
	}
	return Apply(&op, x)
}
