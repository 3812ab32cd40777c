package snug

// ofInput makes an operation that goes element by element and whose gradient needs x: by
// the kernels name, of x, and name backward, of x and dy. f are their numbers. The result
// is a recipe of x.
func ofInput(name string, f ...float64) *Op {
	run := func(c *Call, x *Tensor) *Tensor { return c.Run(name, x.shape, f, x) }
	return &Op{
		Name: name,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			c.Save("x", in[0])
			return run(c, in[0])
		},
		Remake: func(c *Call) *Tensor { return run(c, c.Saved("x")) },
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			x := c.Saved("x")
			dx := c.over(dy, x)
			c.Launch(name+" backward", f, []*Tensor{dx}, x, dy)
			return c.gradient(dx)
		},
	}
}

// ofResult makes one whose gradient needs the result alone, and its form in place.
func ofResult(name string, f ...float64) (apart, inPlace *Op) {
	back := func(c *Call, dy *Tensor) []*Tensor {
		y := c.Saved("y")
		dx := c.over(dy, y)
		c.Launch(name+" backward", f, []*Tensor{dx}, y, dy)
		return c.gradient(dx)
	}
	apart = &Op{
		Name: name,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			y := c.Run(name, in[0].shape, f, in[0])
			c.Save("y", y)
			return y
		},
		Backward: back,
	}
	inPlace = &Op{
		Name:    name + " in place",
		InPlace: true,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			c.Launch(name, f, in, in...)
			c.Save("y", in[0])
			return in[0]
		},
		Backward: back,
	}
	return apart, inPlace
}
