package snug

import "fmt"

// MaxPool2D is the largest element of each window of kernel × kernel in x [… h w], at
// distances of stride; padding, half a window at most, never wins. The result is [… oh ow]
// with oh = (h + 2·padding − kernel)/stride + 1, rounded down or, for ceil, up, where the
// last window begins inside. The gradient goes to the first largest element, whose place
// in its window is all that is saved: a byte, or four where kernel is above 16.
func (x *Tensor) MaxPool2D(kernel, stride, padding int, ceil bool) *Tensor {
	p := pool{kernel, stride, padding, ceil}
	numbers := []float64{float64(kernel), float64(stride), float64(padding)}
	return Apply(&Op{
		Name:  "max pool",
		Shape: p.shape,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			place := Uint8
			if kernel > 16 {
				place = Int32
			}
			shape, _ := p.shape(in[0].shape)
			y, at := c.New(in[0].dtype, shape), c.New(place, shape)
			c.Launch("max pool", numbers, []*Tensor{y, at}, in[0])
			c.Save("at", at)
			return y
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			return c.gradient(c.Run("max pool backward", c.Shape(0), numbers, dy, c.Saved("at")))
		},
	}, x)
}

// pool is where square windows lie.
type pool struct {
	kernel, stride, padding int
	ceil                    bool
}

func (p pool) shape(in ...[]int) ([]int, error) {
	x := in[0]
	n := len(x) - 2
	switch {
	case p.kernel < 1 || p.stride < 1 || p.padding < 0 || 2*p.padding > p.kernel:
		return x, fmt.Errorf("windows of %d in strides of %d with a padding of %d: 1 or more wanted, and at most half a window of padding", p.kernel, p.stride, p.padding)
	case n < 0 || min(x[n], x[n+1]) < max(1, p.kernel-2*p.padding):
		return x, fmt.Errorf("%w: x %v, [… h w] of %d and more wanted for windows of %d", ErrShape, x, max(1, p.kernel-2*p.padding), p.kernel)
	}
	return append(append([]int{}, x[:n]...), p.size(x[n]), p.size(x[n+1])), nil
}

func (p pool) size(in int) int {
	rest := in + 2*p.padding - p.kernel
	out := rest/p.stride + 1
	if p.ceil && rest%p.stride > 0 && out*p.stride < in+p.padding {
		out++
	}
	return out
}
