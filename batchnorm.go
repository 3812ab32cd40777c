package snug

import (
	"fmt"
	"math"
	"slices"
)

// MeanVariance are x's over all dimensions but 1, [n c …] to [c] each, for BatchNorm. The
// variance is the biased one. Neither is recorded: BatchNorm knows how x moves them.
// They are float32 where x is a 16-bit float.
func (x *Tensor) MeanVariance() (mean, variance *Tensor) {
	s, dtype, shape := x.s, x.dtype, x.s.dims(x.Dim(1))
	if dtype.Half() {
		dtype = Float32
	}
	if !s.ok("mean variance") {
		return s.blank(dtype, shape), s.blank(dtype, shape)
	}
	defer s.end(s.begin())
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
//
// The result is a recipe of what is saved, as are those of the forms below: what reads it
// next holds no second activation for it.
func (x *Tensor) BatchNorm(mean, variance, weight, bias Operand, eps float64, batch bool) *Tensor {
	return Apply(opOf(x.s, batchNorm{"batch norm", eps, 0, batch}), x, mean, variance, weight, bias)
}

// BatchNormReLU is max(0, BatchNorm), in one pass.
func (x *Tensor) BatchNormReLU(mean, variance, weight, bias Operand, eps float64, batch bool) *Tensor {
	return Apply(opOf(x.s, batchNorm{"batch norm relu", eps, math.Inf(1), batch}), x, mean, variance, weight, bias)
}

// BatchNormReLU6 is BatchNorm, but no less than 0 and no more than 6, in one pass.
func (x *Tensor) BatchNormReLU6(mean, variance, weight, bias Operand, eps float64, batch bool) *Tensor {
	return Apply(opOf(x.s, batchNorm{"batch norm relu6", eps, 6, batch}), x, mean, variance, weight, bias)
}

// BatchNormAdd is BatchNorm + y, for y of x's shape, in one pass. 16-bit floats are rounded
// once, where the two operations round twice. It saves y, for its recipe.
func (x *Tensor) BatchNormAdd(y, mean, variance, weight, bias Operand, eps float64, batch bool) *Tensor {
	return Apply(opOf(x.s, batchNorm{"batch norm add", eps, 0, batch}), x, mean, variance, weight, bias, y)
}

// BatchNormAddReLU is max(0, BatchNorm + y), in one pass: the end of a residual block, which
// holds no activation of its own where y is a recipe or is saved by what reads it too. Its
// gradient passes where the sum, made again, is above 0.
func (x *Tensor) BatchNormAddReLU(y, mean, variance, weight, bias Operand, eps float64, batch bool) *Tensor {
	return Apply(opOf(x.s, batchNorm{"batch norm add relu", eps, math.Inf(1), batch}), x, mean, variance, weight, bias, y)
}

var normNames = []string{"x", "mean", "variance", "weight", "bias", "y"}

// batchNorm adds the last of six inputs, and keeps its result between 0 and most, if that is
// not 0. batch: mean and variance are x's own.
type batchNorm struct {
	name      string
	eps, most float64
	batch     bool
}

func (b batchNorm) op() *Op {
	forward, backward := []float64{b.eps, b.most}, []float64{b.eps, b.most, 0}
	if b.batch {
		backward[2] = 1
	}
	return &Op{
		Name:      b.name,
		precision: statistics,
		Shape: func(in ...[]int) ([]int, error) {
			x := in[0]
			if len(x) < 2 {
				return x, fmt.Errorf("%w: x %v, [n c …] wanted", ErrShape, x)
			}
			for i, s := range in[1:5] {
				if !slices.Equal(s, x[1:2]) {
					return x, fmt.Errorf("%w: x %v and %s %v, [%d] wanted", ErrShape, x, normNames[i+1], s, x[1])
				}
			}
			if len(in) == 6 && !slices.Equal(in[5], x) {
				return x, fmt.Errorf("%w: x %v and y %v, which has to be the same", ErrShape, x, in[5])
			}
			return x, nil
		},
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			for i, t := range in {
				c.Save(normNames[i], t)
			}
			return c.Run("batch norm", in[0].shape, forward, in...)
		},
		Remake: func(c *Call) *Tensor {
			in := c.savedAs(make([]*Tensor, 0, 6), normNames[:len(c.e.shapes)])
			return c.Run("batch norm", c.Shape(0), forward, in...)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			d := c.gradients()
			in := append(c.savedAs(make([]*Tensor, 0, 7), normNames[:5]), dy)
			clamped := len(d) == 6 && b.most != 0
			if clamped { // made again before there is more to hold
				in = append(in, c.Saved("y"))
			}
			d[0], d[3], d[4] = c.New(dy.dtype, c.Shape(0)), c.New(in[3].dtype, c.Shape(3)), c.New(in[4].dtype, c.Shape(4))
			out := []*Tensor{d[0], d[3], d[4]}
			if clamped {
				d[5] = c.over(dy, dy)
				out = append(out, d[5])
			} else if len(d) == 6 {
				d[5] = dy
			}
			c.Launch("batch norm backward", backward, out, in...)
			return d
		},
	}
}

// savedAs appends what was saved under these names.
func (c *Call) savedAs(to []*Tensor, names []string) []*Tensor {
	for _, name := range names {
		to = append(to, c.Saved(name))
	}
	return to
}
