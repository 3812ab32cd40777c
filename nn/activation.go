package nn

import "github.com/snug-ml/snug"

// Activations, as layers: they go element by element and have nothing to learn.
var (
	ReLU      = Func((*snug.Tensor).ReLU)
	ReLU6     = Func((*snug.Tensor).ReLU6)
	GELU      = Func((*snug.Tensor).GELU)
	GELUTanh  = Func((*snug.Tensor).GELUTanh)
	SiLU      = Func((*snug.Tensor).SiLU)
	Hardswish = Func((*snug.Tensor).Hardswish)
	Sigmoid   = Func((*snug.Tensor).Sigmoid)
	Tanh      = Func((*snug.Tensor).Tanh)
	Softplus  = Func((*snug.Tensor).Softplus)
)

// LeakyReLU is x where it is positive, and slope·x elsewhere.
func LeakyReLU(slope float64) Func {
	return func(x *snug.Tensor) *snug.Tensor { return x.LeakyReLU(slope) }
}

// ELU is x where it is positive, and alpha·(eˣ − 1) elsewhere.
func ELU(alpha float64) Func {
	return func(x *snug.Tensor) *snug.Tensor { return x.ELU(alpha) }
}
