package nn

import "github.com/snug-ml/snug"

// LayerNorm normalizes x over its last dimensions, those of Weight.
type LayerNorm struct {
	Weight, Bias *snug.Param
	Eps          float64 // 1e-5
}

// NewLayerNorm is for x whose last dimensions are shape.
func NewLayerNorm(shape ...int) *LayerNorm {
	return &LayerNorm{snug.NewParam(snug.Const(1), shape...), snug.NewParam(snug.Const(0), shape...), 1e-5}
}

func (l *LayerNorm) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor { return x.LayerNorm(l.Weight, l.Bias, l.Eps) }, x)
}

// GroupNorm normalizes each sample's groups of channels of x [n c …].
type GroupNorm struct {
	Weight, Bias *snug.Param // [c]
	Groups       int
	Eps          float64 // 1e-5
}

func NewGroupNorm(groups, channels int) *GroupNorm {
	return &GroupNorm{snug.NewParam(snug.Const(1), channels), snug.NewParam(snug.Const(0), channels), groups, 1e-5}
}

func (l *GroupNorm) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor { return x.GroupNorm(l.Groups, l.Weight, l.Bias, l.Eps) }, x)
}
