package snug

import (
	"fmt"
	"slices"
)

// ConvTranspose2D is the transpose of Conv2D, its gradient by x taken as a function: x
// [n c h w], w [c o/groups kh kw] and bias [o], which may be nil, give [n o oh ow] with
// oh = (h−1)·stride − 2·padding + dilation·(kh−1) + outputPadding + 1. outputPadding, below
// the stride, chooses among the sizes that Conv2D makes h of. It saves x and w. dx is
// Conv2D of dy with w, dw the correlation of dy with x, dbias = Σ dy.
func (x *Tensor) ConvTranspose2D(w, bias Operand, c Conv2DConfig, outputPadding int) *Tensor {
	return x.withBias(opOf(x.s, convTranspose2D{c, outputPadding}), w, bias)
}

type convTranspose2D struct {
	Conv2DConfig
	outputPadding int
}

func (c convTranspose2D) op() *Op {
	numbers := c.numbers()
	return &Op{
		Name:      "conv transpose2d",
		precision: low,
		cost:      func(in [][]int, _ []int) float64 { return float64(numel(in[0])) * float64(numel(in[1][1:])) },
		Shape:     c.shape,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			c.Save("x", in[0])
			c.Save("w", in[1])
			y := c.Run("conv backward data", c.out, numbers, in[:2]...)
			if len(in) == 3 {
				c.Launch("add", nil, []*Tensor{y}, y, c.reshape(in[2], c.dims(c.out[1], 1, 1)))
			}
			return y
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			d := c.gradients()
			if c.Needs(0) {
				d[0] = c.Run("conv", c.Shape(0), numbers, dy, c.Saved("w"))
			}
			if c.Needs(1) {
				d[1] = c.Run("conv backward weights", c.Shape(1), numbers, dy, c.Saved("x"))
			}
			if len(d) == 3 && c.Needs(2) {
				d[2] = c.sumOver(dy, []int{1}, []int{0, 2, 3}, c.Shape(2), 1)
			}
			return d
		},
	}
}

func (c convTranspose2D) shape(in ...[]int) ([]int, error) {
	x, w := in[0], in[1]
	if err := c.check(); err != nil {
		return x, err
	}
	if c.outputPadding < 0 || c.outputPadding >= c.Stride {
		return x, fmt.Errorf("an output padding of %d for a stride of %d, less wanted", c.outputPadding, c.Stride)
	}
	if len(x) != 4 || len(w) != 4 || x[1] != w[0] || x[1]%c.Groups != 0 || min(w[2], w[3]) < 1 {
		return x, fmt.Errorf("%w: x %v and weight %v in %d groups, [n c h w] and [c o/groups kh kw] wanted", ErrShape, x, w, c.Groups)
	}
	out := []int{x[0], w[1] * c.Groups, 0, 0}
	if len(in) == 3 && !slices.Equal(in[2], out[1:2]) {
		return x, fmt.Errorf("%w: weight %v in %d groups and bias %v", ErrShape, w, c.Groups, in[2])
	}
	for i := 2; i < 4; i++ {
		out[i] = (x[i]-1)*c.Stride - 2*c.Padding + c.Dilation*(w[i]-1) + c.outputPadding + 1
		if x[i] < 1 || out[i] < 1 {
			return x, fmt.Errorf("%w: nothing is left of x %v with weight %v and a padding of %d", ErrShape, x, w, c.Padding)
		}
	}
	return out, nil
}
