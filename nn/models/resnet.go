package models

import (
	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
)

// ResNetConfig is of a residual network (He et al., 2016).
type ResNetConfig struct {
	Blocks     []int `json:"blocks"`     // in each stage; the width doubles from one to the next
	Bottleneck bool  `json:"bottleneck"` // blocks of 1×1, 3×3, 1×1, four times as wide outside
	Width      int   `json:"width"`      // of the first stage, 64
	Channels   int   `json:"channels"`   // of x, 3
	Classes    int   `json:"classes"`
	SmallStem  bool  `json:"small_stem"` // 3×3 without stride and pooling, for CIFAR's and MNIST's small images
}

func DefaultResNet18() ResNetConfig {
	return ResNetConfig{Blocks: []int{2, 2, 2, 2}, Width: 64, Channels: 3, Classes: 1000}
}

func DefaultResNet34() ResNetConfig {
	c := DefaultResNet18()
	c.Blocks = []int{3, 4, 6, 3}
	return c
}

func DefaultResNet50() ResNetConfig {
	c := DefaultResNet34()
	c.Bottleneck = true
	return c
}

// ResNet maps images [n channels h w] to logits [n classes].
type ResNet struct {
	Conv1                          *nn.Conv2D
	BN1                            *nn.BatchNorm
	Layer1, Layer2, Layer3, Layer4 []*ResidualBlock
	FC                             *nn.Linear

	pool bool
}

// NewResNet has up to four stages. Convolutions begin with Kaiming's normal weights by
// fan-out, as in torchvision.
func NewResNet(c ResNetConfig) *ResNet {
	m := &ResNet{pool: !c.SmallStem}
	if c.SmallStem {
		m.Conv1 = conv(c.Channels, c.Width, 3, 1, 1)
	} else {
		m.Conv1 = conv(c.Channels, c.Width, 7, 2, 1)
	}
	m.BN1 = nn.NewBatchNorm(c.Width)
	in := c.Width
	for i, stage := range []*[]*ResidualBlock{&m.Layer1, &m.Layer2, &m.Layer3, &m.Layer4} {
		if i >= len(c.Blocks) {
			break
		}
		for k := range c.Blocks[i] {
			stride := 1
			if i > 0 && k == 0 {
				stride = 2
			}
			b := newResidualBlock(in, c.Width<<i, stride, c.Bottleneck)
			*stage = append(*stage, b)
			in = b.out
		}
	}
	m.FC = nn.NewLinear(in, c.Classes, true)
	return m
}

func (m *ResNet) Forward(x *snug.Tensor) *snug.Tensor {
	fns := []func(*snug.Tensor) *snug.Tensor{block(m.stem)}
	for _, stage := range [][]*ResidualBlock{m.Layer1, m.Layer2, m.Layer3, m.Layer4} {
		for _, b := range stage {
			fns = append(fns, block(b.Forward))
		}
	}
	x = snug.Chain(x, fns...)
	return m.FC.Forward(x.Mean(-2, -1))
}

func (m *ResNet) stem(x *snug.Tensor) *snug.Tensor {
	x = snug.Chain(x, m.Conv1.Forward, m.BN1.ForwardReLU)
	if m.pool {
		x = x.MaxPool2D(3, 2, 1, false)
	}
	return x
}

// block marks a link of a chain, which frees its result once the next has read it: what a
// batch norm ends is made again where backward reads it.
func block(fn func(*snug.Tensor) *snug.Tensor) func(*snug.Tensor) *snug.Tensor {
	return func(x *snug.Tensor) *snug.Tensor { return snug.Block(fn, x) }
}

// ResidualBlock is x plus two convolutions of it, or three in a bottleneck, with batch
// norm and ReLU. Where the shape changes, x passes through Downsample.
type ResidualBlock struct {
	Conv1      *nn.Conv2D
	BN1        *nn.BatchNorm
	Conv2      *nn.Conv2D
	BN2        *nn.BatchNorm
	Conv3      *nn.Conv2D // of a bottleneck
	BN3        *nn.BatchNorm
	Downsample nn.Sequential

	out int
}

func newResidualBlock(in, width, stride int, bottleneck bool) *ResidualBlock {
	b := &ResidualBlock{out: width}
	if bottleneck {
		b.out = 4 * width
		b.Conv1, b.BN1 = conv(in, width, 1, 1, 1), nn.NewBatchNorm(width)
		b.Conv2, b.BN2 = conv(width, width, 3, stride, 1), nn.NewBatchNorm(width)
		b.Conv3, b.BN3 = conv(width, b.out, 1, 1, 1), nn.NewBatchNorm(b.out)
	} else {
		b.Conv1, b.BN1 = conv(in, width, 3, stride, 1), nn.NewBatchNorm(width)
		b.Conv2, b.BN2 = conv(width, width, 3, 1, 1), nn.NewBatchNorm(width)
	}
	if stride != 1 || in != b.out {
		b.Downsample = nn.Sequential{conv(in, b.out, 1, stride, 1), nn.NewBatchNorm(b.out)}
	}
	return b
}

func (b *ResidualBlock) Forward(x *snug.Tensor) *snug.Tensor {
	fns, last := []func(*snug.Tensor) *snug.Tensor{b.Conv1.Forward, b.BN1.ForwardReLU, b.Conv2.Forward}, b.BN2
	if b.Conv3 != nil {
		fns, last = append(fns, b.BN2.ForwardReLU, b.Conv3.Forward), b.BN3
	}
	y := snug.Chain(x, fns...)
	if b.Downsample != nil {
		x = b.Downsample.Forward(x)
	}
	return last.ForwardAddReLU(y, x)
}

// conv has no bias: a batch norm follows. The padding keeps the size but for the stride.
func conv(in, out, kernel, stride, groups int) *nn.Conv2D {
	c := nn.DefaultConv2D(in, out, kernel)
	c.Bias, c.Stride, c.Padding, c.Groups = false, stride, kernel/2, groups
	l := nn.NewConv2D(c)
	l.Weight = snug.NewParam(snug.KaimingNormal(0, true), out, in/groups, kernel, kernel)
	return l
}
