package nn

import "github.com/snug-ml/snug"

// MaxPool2D is the largest element of each square window of x [… h w].
type MaxPool2D struct {
	Kernel, Stride, Padding int
	Ceil                    bool // the size of the result is rounded up
}

func NewMaxPool2D(kernel, stride, padding int) *MaxPool2D {
	return &MaxPool2D{Kernel: kernel, Stride: stride, Padding: padding}
}

func (l *MaxPool2D) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		return x.MaxPool2D(l.Kernel, l.Stride, l.Padding, l.Ceil)
	}, x)
}

// AvgPool2D is the mean of each square window of x [… h w].
type AvgPool2D struct {
	Kernel, Stride, Padding int
	Ceil                    bool // the size of the result is rounded up
	CountPadding            bool // zeros of the padding are elements
}

// NewAvgPool2D counts the padding, as PyTorch does.
func NewAvgPool2D(kernel, stride, padding int) *AvgPool2D {
	return &AvgPool2D{Kernel: kernel, Stride: stride, Padding: padding, CountPadding: true}
}

func (l *AvgPool2D) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		return x.AvgPool2D(l.Kernel, l.Stride, l.Padding, l.Ceil, l.CountPadding)
	}, x)
}

// AdaptiveAvgPool2D is the mean of each of Height × Width windows that cover x [… h w].
type AdaptiveAvgPool2D struct{ Height, Width int }

func NewAdaptiveAvgPool2D(height, width int) *AdaptiveAvgPool2D {
	return &AdaptiveAvgPool2D{height, width}
}

func (l *AdaptiveAvgPool2D) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor { return x.AdaptiveAvgPool2D(l.Height, l.Width) }, x)
}
