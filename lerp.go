package snug

// Lerp is x + w·(scale·y − x), without a gradient: for running statistics. y has x's shape
// or is broadcast to it.
func (x *Tensor) Lerp(y Operand, w, scale float64) *Tensor {
	return Apply(opOf(x.s, lerp{w, scale}), x, y)
}

type lerp struct{ w, scale float64 }

func (l lerp) op() *Op {
	numbers := []float64{l.w, l.scale}
	return &Op{
		Name:      "lerp",
		precision: widest,
		Shape:     inPlaceShape,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			return c.Run("lerp", in[0].shape, numbers, in...)
		},
	}
}
