package snug

import (
	"fmt"
	"slices"
)

// GroupNorm normalizes x [n c …] over each sample's groups of c/groups channels and gives
// x̂·weight + bias with x̂ = (x − mean)/√(variance + eps), weight and bias [c] (Wu and He,
// 2018). Saved are x, weight, bias, and each group's mean and inverse deviation; the result
// is a recipe of them.
//
// dweight = Σ dy·x̂, dbias = Σ dy, and with h = dy·weight and means over the group
// dx = (h − mean(h) − x̂·mean(h·x̂))/√(variance + eps).
func (x *Tensor) GroupNorm(groups int, weight, bias Operand, eps float64) *Tensor {
	return Apply(opOf(x.s, groupNorm{groups, eps}), x, weight, bias)
}

type groupNorm struct {
	groups int
	eps    float64
}

func (g groupNorm) op() *Op {
	return &Op{
		Name:      "group norm",
		precision: firstApart,
		Shape: func(in ...[]int) ([]int, error) {
			x := in[0]
			if len(x) < 2 || g.groups < 1 || x[1]%g.groups != 0 {
				return x, fmt.Errorf("%w: x %v in %d groups of channels", ErrShape, x, g.groups)
			}
			return x, fitNorm(x, x[1:2], in[1], in[2])
		},
		Forward: func(c *Call, in ...*Tensor) *Tensor { return c.groupNorm(in, in[0].shape, g.groups, g.eps) },
		Remake:  func(c *Call) *Tensor { return c.groupNormAgain(c.Shape(0), g.groups, g.eps) },
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			return c.groupNormBackward(dy, c.Shape(0), g.groups)
		},
	}
}

func fitNorm(x, want, weight, bias []int) error {
	if !slices.Equal(weight, want) || !slices.Equal(bias, want) {
		return fmt.Errorf("%w: x %v, weight %v and bias %v, %v wanted of both", ErrShape, x, weight, bias, want)
	}
	return nil
}

// groupNorm runs the kernel on in[0] as shape [n c …].
func (c *Call) groupNorm(in []*Tensor, shape []int, groups int, eps float64) *Tensor {
	x, n := in[0], in[1].Len()
	weight, bias := c.reshape(in[1], c.dims(n)), c.reshape(in[2], c.dims(n))
	y, mean, inverse := c.groupNormed(x, weight, bias, shape, groups, eps)
	c.Save("x", x)
	c.Save("weight", weight)
	c.Save("bias", bias)
	c.Save("mean", mean)
	c.Save("inverse", inverse)
	return y
}

func (c *Call) groupNormAgain(shape []int, groups int, eps float64) *Tensor {
	y, _, _ := c.groupNormed(c.Saved("x"), c.Saved("weight"), c.Saved("bias"), shape, groups, eps)
	return y
}

func (c *Call) groupNormed(x, weight, bias *Tensor, shape []int, groups int, eps float64) (y, mean, inverse *Tensor) {
	stats := x.dtype
	if stats.Half() {
		stats = Float32
	}
	y, mean, inverse = c.New(x.dtype, shape), c.New(stats, c.dims(shape[0]*groups)), c.New(stats, c.dims(shape[0]*groups))
	c.Launch("group norm", []float64{float64(groups), eps}, []*Tensor{y, mean, inverse}, c.reshape(x, shape), weight, bias)
	return c.reshape(y, x.shape), mean, inverse
}

func (c *Call) groupNormBackward(dy *Tensor, shape []int, groups int) []*Tensor {
	x, weight := c.Saved("x"), c.Saved("weight")
	dx, dweight, dbias := c.New(x.dtype, shape), c.New(weight.dtype, weight.shape), c.New(weight.dtype, weight.shape)
	c.Launch("group norm backward", []float64{float64(groups)}, []*Tensor{dx, dweight, dbias},
		c.reshape(x, shape), weight, c.Saved("mean"), c.Saved("inverse"), c.reshape(dy, shape))
	return append(c.gradients()[:0], c.reshape(dx, c.Shape(0)), c.reshape(dweight, c.Shape(1)), c.reshape(dbias, c.Shape(2)))
}
