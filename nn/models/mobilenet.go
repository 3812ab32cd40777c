package models

import (
	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
)

// MobileNetV2Config is of a network of depthwise-separable blocks (Sandler et al., 2018).
type MobileNetV2Config struct {
	Channels int     `json:"channels"` // of x
	Classes  int     `json:"classes"`
	Dropout  float64 `json:"dropout"` // before the classifier
}

func DefaultMobileNetV2() MobileNetV2Config {
	return MobileNetV2Config{Channels: 3, Classes: 1000, Dropout: 0.2}
}

// MobileNetV2 maps images [n channels h w] to logits [n classes].
type MobileNetV2 struct {
	Features   []nn.Layer
	Classifier nn.Sequential
}

func NewMobileNetV2(c MobileNetV2Config) *MobileNetV2 {
	m := &MobileNetV2{Features: []nn.Layer{convNormReLU6(c.Channels, 32, 3, 2, 1)}}
	in := 32
	for _, s := range []struct{ expand, out, n, stride int }{
		{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
	} {
		for k := range s.n {
			stride := 1
			if k == 0 {
				stride = s.stride
			}
			m.Features = append(m.Features, newInvertedResidual(in, s.out, stride, s.expand))
			in = s.out
		}
	}
	m.Features = append(m.Features, convNormReLU6(in, 1280, 1, 1, 1))
	fc := nn.NewLinear(1280, c.Classes, true)
	fc.Weight = snug.NewParam(snug.Normal(0.01), c.Classes, 1280)
	fc.Bias = snug.NewParam(snug.Const(0), c.Classes)
	m.Classifier = nn.Sequential{nn.NewDropout(c.Dropout), fc}
	return m
}

func (m *MobileNetV2) Forward(x *snug.Tensor) *snug.Tensor {
	fns := make([]func(*snug.Tensor) *snug.Tensor, len(m.Features))
	for i, f := range m.Features {
		fns[i] = block(f.Forward)
	}
	return m.Classifier.Forward(snug.Chain(x, fns...).Mean(-2, -1))
}

// InvertedResidual widens x, convolves each channel by itself and narrows it again; x is
// added where the shape is the same.
type InvertedResidual struct {
	Conv nn.Sequential

	add bool
}

func newInvertedResidual(in, out, stride, expand int) *InvertedResidual {
	b := &InvertedResidual{add: stride == 1 && in == out}
	wide := in * expand
	if expand != 1 {
		b.Conv = append(b.Conv, convNormReLU6(in, wide, 1, 1, 1))
	}
	b.Conv = append(b.Conv, convNormReLU6(wide, wide, 3, stride, wide), conv(wide, out, 1, 1, 1), nn.NewBatchNorm(out))
	return b
}

func (b *InvertedResidual) Forward(x *snug.Tensor) *snug.Tensor {
	if !b.add {
		return b.Conv.Forward(x)
	}
	last := len(b.Conv) - 1
	return b.Conv[last].(*nn.BatchNorm).ForwardAdd(b.Conv[:last].Forward(x), x)
}

func convNormReLU6(in, out, kernel, stride, groups int) nn.Sequential {
	return nn.Sequential{conv(in, out, kernel, stride, groups), normReLU6{nn.NewBatchNorm(out)}}
}

// normReLU6 is a batch norm and ReLU6 in one.
type normReLU6 struct{ *nn.BatchNorm }

func (l normReLU6) Forward(x *snug.Tensor) *snug.Tensor { return l.ForwardReLU6(x) }
