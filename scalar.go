package snug

// AddScalar is x + v. It saves nothing.
func (x *Tensor) AddScalar(v float64) *Tensor { return Apply(scalar("add scalar", "shift", v), x) }

// AddScalarInPlace overwrites x and returns it.
func (x *Tensor) AddScalarInPlace(v float64) *Tensor {
	return Apply(scalarInPlace("add scalar", "shift", v), x)
}

// MulScalar is v·x. It saves nothing.
func (x *Tensor) MulScalar(v float64) *Tensor { return Apply(scalar("mul scalar", "scale", v), x) }

// MulScalarInPlace overwrites x and returns it.
func (x *Tensor) MulScalarInPlace(v float64) *Tensor {
	return Apply(scalarInPlace("mul scalar", "scale", v), x)
}

// Neg is −x.
func (x *Tensor) Neg() *Tensor { return Apply(scalar("neg", "scale", -1), x) }

func scalar(name, kernel string, v float64) *Op {
	return &Op{
		Name: name,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			return c.Run(kernel, in[0].shape, []float64{v}, in[0])
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			if kernel == "scale" {
				dy = c.Run("scale", dy.shape, []float64{v}, dy)
			}
			return c.gradient(dy)
		},
	}
}

func scalarInPlace(name, kernel string, v float64) *Op {
	op := scalar(name+" in place", kernel, v)
	op.InPlace = true
	op.Forward = func(c *Call, in ...*Tensor) *Tensor {
		c.Launch(kernel, []float64{v}, in, in...)
		return in[0]
	}
	return op
}
