package nn

import "github.com/snug-ml/snug"

// Sequential is layers one after the other; their parameters are named 0.weight and so on.
// What a layer made is freed once the next has read it, but for what backward needs.
type Sequential []Layer

func (l Sequential) Forward(x *snug.Tensor) *snug.Tensor {
	fns := make([]func(*snug.Tensor) *snug.Tensor, len(l))
	for i, layer := range l {
		fns[i] = layer.Forward
	}
	return snug.Chain(x, fns...)
}

// Flatten joins the dimensions from the From-th one on into one.
type Flatten struct{ From int }

// NewFlatten leaves the first dimension, the samples.
func NewFlatten() *Flatten { return &Flatten{1} }

func (l *Flatten) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor { return x.Flatten(l.From) }, x)
}
