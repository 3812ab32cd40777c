package snug

// GELU is x·Φ(x), Φ the normal distribution (Hendrycks and Gimpel, 2016). Its gradient
// Φ(x) + x·φ(x) needs x.
func (x *Tensor) GELU() *Tensor { return Apply(gelu, x) }

// GELUTanh is GELU with Φ(x) as ½(1 + tanh(√(2/π)·(x + 0.044715·x³))), as GPT-2 has it.
func (x *Tensor) GELUTanh() *Tensor { return Apply(geluTanh, x) }

var gelu, geluTanh = ofInput("gelu"), ofInput("gelu tanh")
