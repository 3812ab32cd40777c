package snug

// Softmax is eˣ/Σeˣ along one dimension, computed from x less its greatest element so that
// nothing overflows. With y the result, the gradient is y·(dy − Σ dy·y).
func (x *Tensor) Softmax(dim int) *Tensor { return x.softmax("softmax", dim) }

// LogSoftmax is x − ln Σeˣ along one dimension, computed alike. With y the result, the
// gradient is dy − eʸ·Σ dy.
func (x *Tensor) LogSoftmax(dim int) *Tensor { return x.softmax("log softmax", dim) }

func (x *Tensor) softmax(name string, dim int) *Tensor {
	l, err := x.along(dim)
	op, _ := inFull(ofResult(name, l.numbers()...))
	op.Backward = func(c *Call, dy *Tensor) []*Tensor { // which reads a row before it writes it
		return c.gradient(c.Run(name+" backward", dy.shape, l.numbers(), c.Saved("y"), dy))
	}
	op.Shape = func(in ...[]int) ([]int, error) { return in[0], err }
	return Apply(op, x)
}
