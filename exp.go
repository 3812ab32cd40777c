package snug

// Exp is eˣ, which is its own gradient.
func (x *Tensor) Exp() *Tensor { return Apply(exp, x) }

// ExpInPlace overwrites x and returns it.
func (x *Tensor) ExpInPlace() *Tensor { return Apply(expInPlace, x) }

// Log is the natural logarithm, NaN for negative x. Its gradient is 1/x.
func (x *Tensor) Log() *Tensor { return Apply(log, x) }

// Sqrt is √x, NaN for negative x. With y the result, its gradient is 1/2y.
func (x *Tensor) Sqrt() *Tensor { return Apply(sqrt, x) }

// SqrtInPlace overwrites x and returns it.
func (x *Tensor) SqrtInPlace() *Tensor { return Apply(sqrtInPlace, x) }

// Square is x². Its gradient is 2x.
func (x *Tensor) Square() *Tensor { return Apply(square, x) }

// Pow is xᵖ. Its gradient is p·xᵖ⁻¹, and 0 for p = 0.
func (x *Tensor) Pow(p float64) *Tensor {
	op, _ := inFull(ofInput("pow", p), nil)
	return Apply(op, x)
}

var (
	exp, expInPlace   = inFull(ofResult("exp"))
	log, _            = inFull(ofInput("log"), nil)
	square            = ofInput("square")
	sqrt, sqrtInPlace = ofResult("sqrt")
)
