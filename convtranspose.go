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
	shape := func(in ...[]int) ([]int, error) { return c.transposed(outputPadding, in) }
	return Apply(&Op{
		Name:      "conv transpose2d",
		precision: low,
		cost:      func(in [][]int, _ []int) float64 { return float64(numel(in[0])) * float64(numel(in[1][1:])) },
		Shape:     shape,
		Forward: func(call *Call, in ...*Tensor) *Tensor {
			call.Save("x", in[0])
			call.Save("w", in[1])
			to, _ := shape(call.e.shapes...)
			y := call.Run("conv backward data", to, c.numbers(), in[:2]...)
			if len(in) == 3 {
				call.Launch("add", nil, []*Tensor{y}, y, call.reshape(in[2], []int{to[1], 1, 1}))
			}
			return y
		},
		Backward: func(call *Call, dy *Tensor) []*Tensor {
			d := make([]*Tensor, len(call.e.shapes))
			if call.Needs(0) {
				d[0] = call.Run("conv", call.Shape(0), c.numbers(), dy, call.Saved("w"))
			}
			if call.Needs(1) {
				d[1] = call.Run("conv backward weights", call.Shape(1), c.numbers(), dy, call.Saved("x"))
			}
			if len(d) == 3 && call.Needs(2) {
				d[2] = call.sumOver(dy, []int{1}, []int{0, 2, 3}, call.Shape(2), 1)
			}
			return d
		},
	}, operands(x, w, bias)...)
}

func (c Conv2DConfig) transposed(outputPadding int, in [][]int) ([]int, error) {
	x, w := in[0], in[1]
	if err := c.check(); err != nil {
		return x, err
	}
	if outputPadding < 0 || outputPadding >= c.Stride {
		return x, fmt.Errorf("an output padding of %d for a stride of %d, less wanted", outputPadding, c.Stride)
	}
	if len(x) != 4 || len(w) != 4 || x[1] != w[0] || x[1]%c.Groups != 0 || min(w[2], w[3]) < 1 {
		return x, fmt.Errorf("%w: x %v and weight %v in %d groups, [n c h w] and [c o/groups kh kw] wanted", ErrShape, x, w, c.Groups)
	}
	out := []int{x[0], w[1] * c.Groups, 0, 0}
	if len(in) == 3 && !slices.Equal(in[2], out[1:2]) {
		return x, fmt.Errorf("%w: weight %v in %d groups and bias %v", ErrShape, w, c.Groups, in[2])
	}
	for i := 2; i < 4; i++ {
		out[i] = (x[i]-1)*c.Stride - 2*c.Padding + c.Dilation*(w[i]-1) + outputPadding + 1
		if x[i] < 1 || out[i] < 1 {
			return x, fmt.Errorf("%w: nothing is left of x %v with weight %v and a padding of %d", ErrShape, x, w, c.Padding)
		}
	}
	return out, nil
}
