package nn

import "github.com/snug-ml/snug"

// CausalSelfAttention is attention with several heads over x [b t w], where each place sees
// itself and those before it: one product gives queries, keys and values, another mixes
// what the heads found (Vaswani et al., 2017).
type CausalSelfAttention struct {
	QKV, Proj *Linear // w to 3·w, w to w
	Heads     int
}

// NewCausalSelfAttention is for width w, which heads divides.
func NewCausalSelfAttention(width, heads int) *CausalSelfAttention {
	return &CausalSelfAttention{NewLinear(width, 3*width, true), NewLinear(width, width, true), heads}
}

func (l *CausalSelfAttention) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		heads := func(x *snug.Tensor) *snug.Tensor { return x.SelfAttention(l.Heads, true) }
		return snug.Chain(x, l.QKV.Forward, heads, l.Proj.Forward)
	}, x)
}
