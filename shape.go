package snug

import (
	"fmt"
	"slices"
)

// broadcast is the common shape of two: dimensions are aligned from the right, and one
// that is 1 or absent is repeated. With an error it is the longer one.
func broadcast(a, b []int) ([]int, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	if slices.Equal(a, b) {
		return a, nil
	}
	out := slices.Clone(a)
	for i := range b {
		switch m, n := &out[len(a)-1-i], b[len(b)-1-i]; {
		case *m == 1:
			*m = n
		case n != 1 && n != *m:
			return a, fmt.Errorf("%w: %v and %v", ErrShape, a, b)
		}
	}
	return out, nil
}

func broadcastShape(in ...[]int) ([]int, error) {
	out, err := in[0], error(nil)
	for _, s := range in[1:] {
		if out, err = broadcast(out, s); err != nil {
			break
		}
	}
	return out, err
}

// axis is the dimension that d means, from the end where it is negative.
func axis(d int, shape []int) (int, error) {
	i := d
	if i < 0 {
		i += len(shape)
	}
	if i < 0 || i >= len(shape) {
		return 0, fmt.Errorf("%w: no dimension %d in %v", ErrShape, d, shape)
	}
	return i, nil
}

// axes are all dimensions that dims means, in order; all there are for none.
func axes(dims []int, shape []int) ([]int, error) {
	var out []int
	if len(dims) == 0 {
		for i := range shape {
			out = append(out, i)
		}
		return out, nil
	}
	for _, d := range dims {
		i, err := axis(d, shape)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, i) {
			return nil, fmt.Errorf("%w: dimension %d of %v twice", ErrShape, d, shape)
		}
		out = append(out, i)
	}
	slices.Sort(out)
	return out, nil
}

// sumTo is the gradient of a broadcast: t summed onto the smaller shape.
func (c *Call) sumTo(t *Tensor, shape []int) *Tensor {
	if slices.Equal(t.shape, shape) {
		return t
	}
	lead := len(t.shape) - len(shape)
	var kept, gone []int
	for i, d := range t.shape {
		if i < lead || shape[i-lead] != d {
			gone = append(gone, i)
		} else {
			kept = append(kept, i)
		}
	}
	return c.sumOver(t, kept, gone, shape, 1)
}

// sumOver adds up the dimensions gone and multiplies by scale; the result has shape.
func (c *Call) sumOver(t *Tensor, kept, gone, shape []int, scale float64) *Tensor {
	return c.Run("sum", shape, []float64{float64(len(gone)), scale}, c.permuted(t, append(slices.Clone(kept), gone...)))
}

// permuted is a view with the dimensions in another order.
func (c *Call) permuted(t *Tensor, order []int) *Tensor {
	shape, strides := c.dims(order...), c.dims(order...)
	for i, d := range order {
		shape[i], strides[i] = t.shape[d], t.strides[d]
	}
	return c.view(t, shape, strides, 0)
}
