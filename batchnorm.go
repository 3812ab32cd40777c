package snug

import (
	"fmt"
	"slices"
)

// MeanVariance are x's over all dimensions but 1, [n c …] to [c] each, for BatchNorm. The
// variance is the biased one. Neither is recorded: BatchNorm knows how x moves them.
// They are float32 where x is a 16-bit float.
func (x *Tensor) MeanVariance() (mean, variance *Tensor) {
	s, dtype, shape := x.s, x.dtype, []int{x.Dim(1)}
	if dtype.Half() {
		dtype = Float32
	}
	if !s.ok("mean variance") {
		return s.blank(dtype, shape), s.blank(dtype, shape)
	}
	defer s.begin()()
	s.now = s.site("mean variance")
	if err := s.ready(x); err != nil {
		s.fail(s.now, err)
	} else if len(x.shape) < 2 {
		s.fail(s.now, fmt.Errorf("%w: x %v, [n c …] wanted", ErrShape, x.shape))
	}
	mean, variance = s.result(dtype, shape), s.result(dtype, shape)
	s.kernel("mean variance", nil, [3]uint64{}, []*Tensor{mean, variance}, x)
	return mean, variance
}

// BatchNorm is (x − mean)/√(variance + eps)·weight + bias for x [n c …] and the others [c]
// (Ioffe and Szegedy, 2015). batch says that mean and variance are x's own, from
// MeanVariance; the gradient then passes through them too. Saved are x and the small ones.
//
// With x̂ = (x − mean)/√(variance + eps) and sums over all but c: dbias = Σ dy,
// dweight = Σ dy·x̂, dx = weight/√(variance + eps)·(dy − (dbias + x̂·dweight)/m), where m is
// the number of elements of a channel and the part after dy is there for batch alone.
func (x *Tensor) BatchNorm(mean, variance, weight, bias Operand, eps float64, batch bool) *Tensor {
	op := normOp("batch norm", eps, batch, false)
	return Apply(&op, x, mean, variance, weight, bias)
}

// BatchNormReLU is max(0, BatchNorm), in one pass. Its result is a recipe of what it saves:
// what reads it next holds no second activation for it.
func (x *Tensor) BatchNormReLU(mean, variance, weight, bias Operand, eps float64, batch bool) *Tensor {
	op := normOp("batch norm relu", eps, batch, true)
	op.Remake = func(c *Call) *Tensor {
		return c.Run("batch norm", c.Shape(0), []float64{eps, 1}, savedNorm(c)...)
	}
	return Apply(&op, x, mean, variance, weight, bias)
}

var normNames = []string{"x", "mean", "variance", "weight", "bias"}

func savedNorm(c *Call) (in []*Tensor) {
	for _, name := range normNames {
		in = append(in, c.Saved(name))
	}
	return in
}

func normOp(name string, eps float64, batch, relu bool) Op {
	flag := map[bool]float64{true: 1}
	return Op{
		Name:      name,
		precision: firstApart,
		Shape: func(in ...[]int) ([]int, error) {
			x := in[0]
			if len(x) < 2 {
				return x, fmt.Errorf("%w: x %v, [n c …] wanted", ErrShape, x)
			}
			for i, s := range in[1:] {
				if !slices.Equal(s, x[1:2]) {
					return x, fmt.Errorf("%w: x %v and %s %v, [%d] wanted", ErrShape, x, normNames[i+1], s, x[1])
				}
			}
			return x, nil
		},
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			for i, name := range normNames {
				c.Save(name, in[i])
			}
			return c.Run("batch norm", in[0].shape, []float64{eps, flag[relu]}, in...)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			in := savedNorm(c)
			d := []*Tensor{c.New(dy.dtype, c.Shape(0)), nil, nil, c.New(in[3].dtype, c.Shape(3)), c.New(in[4].dtype, c.Shape(4))}
			c.Launch("batch norm backward", []float64{eps, flag[relu], flag[batch]}, []*Tensor{d[0], d[3], d[4]}, append(in, dy)...)
			return d
		},
	}
}
