package nn

import (
	"math"

	"github.com/snug-ml/snug"
)

// Conv2DConfig is of a convolution with square windows.
type Conv2DConfig struct {
	In     int  `json:"in"`  // channels of x
	Out    int  `json:"out"` // channels of the result
	Kernel int  `json:"kernel"`
	Bias   bool `json:"bias"`
	snug.Conv2DConfig
}

// DefaultConv2D has a bias, a stride, a dilation and a group of 1, and no padding.
func DefaultConv2D(in, out, kernel int) Conv2DConfig {
	return Conv2DConfig{In: in, Out: out, Kernel: kernel, Bias: true, Conv2DConfig: snug.DefaultConv2D()}
}

// Conv2D is snug's Conv2D with a weight: [n in h w] to [n out oh ow].
type Conv2D struct {
	Weight *snug.Param // [out in/groups kernel kernel]
	Bias   *snug.Param // [out]; nil: none
	Config Conv2DConfig
}

// NewConv2D draws weight and bias from ±1/√(in/groups·kernel²), as PyTorch does.
func NewConv2D(c Conv2DConfig) *Conv2D {
	fanIn := c.In / max(1, c.Groups) * c.Kernel * c.Kernel
	l := &Conv2D{Weight: snug.NewParam(snug.KaimingUniform(math.Sqrt(5)), c.Out, c.In/max(1, c.Groups), c.Kernel, c.Kernel), Config: c}
	if c.Bias {
		l.Bias = newBias(c.Out, fanIn)
	}
	return l
}

func (l *Conv2D) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		return x.Conv2D(l.Weight, optional(l.Bias), l.Config.Conv2DConfig)
	}, x)
}

// ConvTranspose2D is snug's ConvTranspose2D with a weight: [n in h w] to [n out oh ow].
type ConvTranspose2D struct {
	Weight        *snug.Param // [in out/groups kernel kernel]
	Bias          *snug.Param // [out]; nil: none
	Config        Conv2DConfig
	OutputPadding int
}

// NewConvTranspose2D draws weight and bias from ±1/√(out/groups·kernel²), as PyTorch does.
func NewConvTranspose2D(c Conv2DConfig, outputPadding int) *ConvTranspose2D {
	out := c.Out / max(1, c.Groups)
	l := &ConvTranspose2D{
		Weight: snug.NewParam(snug.KaimingUniform(math.Sqrt(5)), c.In, out, c.Kernel, c.Kernel),
		Config: c, OutputPadding: outputPadding,
	}
	if c.Bias {
		l.Bias = newBias(c.Out, out*c.Kernel*c.Kernel)
	}
	return l
}

func (l *ConvTranspose2D) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		return x.ConvTranspose2D(l.Weight, optional(l.Bias), l.Config.Conv2DConfig, l.OutputPadding)
	}, x)
}
