package nn

import "github.com/snug-ml/snug"

// SelfAttention is attention with several heads over x [b t w]: one product gives queries,
// keys and values, another mixes what the heads found (Vaswani et al., 2017).
type SelfAttention struct {
	QKV, Proj *Linear // w to 3·w, w to w
	Heads     int
	Causal    bool // a place sees those before it, and itself, only
}

// NewSelfAttention is for width w, which heads divides.
func NewSelfAttention(width, heads int, causal bool) *SelfAttention {
	return &SelfAttention{NewLinear(width, 3*width, true), NewLinear(width, width, true), heads, causal}
}

func (l *SelfAttention) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		return l.Proj.Forward(l.QKV.Forward(x).SelfAttention(l.Heads, l.Causal))
	}, x)
}
