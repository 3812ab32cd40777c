package snug

// ReLU is max(0, x). It saves its result, whose sign says where the gradient passes.
func (x *Tensor) ReLU() *Tensor { return Apply(&relu, x) }

// ReLUInPlace overwrites x and returns it.
func (x *Tensor) ReLUInPlace() *Tensor { return Apply(&reluInPlace, x) }

var relu = Op{
	Name: "relu",
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		y := c.Run("relu", in[0].shape, nil, in[0])
		c.Save("y", y)
		return y
	},
	Backward: reluBackward,
}

var reluInPlace = Op{
	Name:    "relu in place",
	InPlace: true,
	Forward: func(c *Call, in ...*Tensor) *Tensor {
		c.Launch("relu", nil, in, in...)
		c.Save("y", in[0])
		return in[0]
	},
	Backward: reluBackward,
}

func reluBackward(c *Call, dy *Tensor) []*Tensor {
	y := c.Saved("y")
	dx := c.over(dy, y)
	c.Launch("relu backward", nil, []*Tensor{dx}, y, dy)
	return c.gradient(dx)
}
