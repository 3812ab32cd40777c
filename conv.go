package snug

import (
	"fmt"
	"slices"
)

// Conv2DConfig is how a convolution's windows lie, the same in both dimensions. Stride,
// Dilation and Groups are 1 or more.
type Conv2DConfig struct {
	Stride   int `json:"stride"`
	Padding  int `json:"padding"`  // zeros on each side
	Dilation int `json:"dilation"` // distance of the elements that a window reads
	Groups   int `json:"groups"`   // of channels, each convolved on its own
}

// DefaultConv2D has a stride, a dilation and a group of 1, and no padding.
func DefaultConv2D() Conv2DConfig { return Conv2DConfig{Stride: 1, Dilation: 1, Groups: 1} }

// Conv2D is the cross-correlation of x [n c h w] with w [o c/groups kh kw], plus bias [o],
// which may be nil:
//
//	y[n o i j] = bias[o] + Σ x[n c i·stride+k·dilation−padding j·stride+l·dilation−padding]·w[o c k l]
//
// summed over the channels c of o's group and the window k, l; [n o oh ow] with
// oh = (h + 2·padding − dilation·(kh−1) − 1)/stride + 1. It saves x and w. dx is the
// transposed convolution of dy with w, dw the correlation of x with dy, dbias = Σ dy.
func (x *Tensor) Conv2D(w, bias Operand, c Conv2DConfig) *Tensor {
	return x.withBias(opOf(x.s, conv2D{c}), w, bias)
}

type conv2D struct{ Conv2DConfig }

func (c conv2D) op() *Op {
	numbers := c.numbers()
	return &Op{
		Name:      "conv2d",
		precision: low,
		rounds:    "conv",
		cost:      func(in [][]int, out []int) float64 { return float64(numel(out)) * float64(numel(in[1][1:])) },
		Shape:     c.shape,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			c.Save("x", in[0])
			c.Save("w", in[1])
			return c.Run("conv", c.out, numbers, in...)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			d := c.gradients()
			if c.Needs(1) {
				x := c.Saved("x")
				c.gather(1, "conv backward weights", numbers, x, dy)
				c.done(x)
			}
			if c.Needs(0) {
				d[0] = c.Run("conv backward data", c.Shape(0), numbers, dy, c.Saved("w"))
			}
			if len(d) == 3 && c.Needs(2) {
				d[2] = c.sumOver(dy, []int{1}, []int{0, 2, 3}, c.Shape(2), 1)
			}
			return d
		},
	}
}

func (c Conv2DConfig) numbers() []float64 {
	return []float64{float64(c.Stride), float64(c.Padding), float64(c.Dilation), float64(c.Groups)}
}

func (c Conv2DConfig) check() error {
	if min(c.Stride, c.Dilation, c.Groups) < 1 || c.Padding < 0 {
		return fmt.Errorf("stride %d, padding %d, dilation %d, groups %d: 1 or more wanted, and of padding 0", c.Stride, c.Padding, c.Dilation, c.Groups)
	}
	return nil
}

// shape is the result's of x, w and a bias that may be missing.
func (c Conv2DConfig) shape(in ...[]int) ([]int, error) {
	x, w := in[0], in[1]
	if err := c.check(); err != nil {
		return x, err
	}
	if len(x) != 4 || len(w) != 4 || w[0]%c.Groups != 0 || x[1] != w[1]*c.Groups || min(w[2], w[3]) < 1 {
		return x, fmt.Errorf("%w: x %v and weight %v in %d groups, [n c h w] and [o c/groups kh kw] wanted", ErrShape, x, w, c.Groups)
	}
	if len(in) == 3 && !slices.Equal(in[2], w[:1]) {
		return x, fmt.Errorf("%w: weight %v and bias %v", ErrShape, w, in[2])
	}
	out := []int{x[0], w[0], 0, 0}
	for i := 2; i < 4; i++ {
		rest := x[i] + 2*c.Padding - c.Dilation*(w[i]-1) - 1
		if rest < 0 {
			return x, fmt.Errorf("%w: x %v is smaller than a window of weight %v", ErrShape, x, w)
		}
		out[i] = rest/c.Stride + 1
	}
	return out, nil
}
