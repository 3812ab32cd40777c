package nn

import "github.com/snug-ml/snug"

// Dropout sets elements to 0 with probability P and scales the others by 1/(1−P), in
// training mode; the scope needs a random stream for it.
type Dropout struct{ P float64 }

func NewDropout(p float64) *Dropout { return &Dropout{p} }

func (l *Dropout) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor { return x.Dropout(l.P) }, x)
}
