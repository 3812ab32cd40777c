package snug

// Sigmoid is 1/(1 + e⁻ˣ). With y the result, its gradient is y·(1−y).
func (x *Tensor) Sigmoid() *Tensor { return Apply(sigmoid, x) }

// SigmoidInPlace overwrites x and returns it.
func (x *Tensor) SigmoidInPlace() *Tensor { return Apply(sigmoidInPlace, x) }

// Tanh is the hyperbolic tangent. With y the result, its gradient is 1−y².
func (x *Tensor) Tanh() *Tensor { return Apply(tanh, x) }

// TanhInPlace overwrites x and returns it.
func (x *Tensor) TanhInPlace() *Tensor { return Apply(tanhInPlace, x) }

// SiLU, or Swish, is x·σ(x), σ the sigmoid (Ramachandran et al., 2017). Its gradient
// σ(x)·(1 + x·(1−σ(x))) needs x.
func (x *Tensor) SiLU() *Tensor { return Apply(silu, x) }

// Softplus is ln(1 + eˣ). With y the result, its gradient is 1−e⁻ʸ.
func (x *Tensor) Softplus() *Tensor { return Apply(softplus, x) }

// SoftplusInPlace overwrites x and returns it.
func (x *Tensor) SoftplusInPlace() *Tensor { return Apply(softplusInPlace, x) }

var (
	sigmoid, sigmoidInPlace   = ofResult("sigmoid")
	tanh, tanhInPlace         = ofResult("tanh")
	silu                      = ofInput("silu")
	softplus, softplusInPlace = ofResult("softplus")
)
