package snug

import "slices"

// Sum adds up the given dimensions, which vanish; all of them for none. The gradient is
// dy, repeated along them.
func (x *Tensor) Sum(dims ...int) *Tensor { return x.reduce("sum", dims, false) }

// Mean is Sum divided by the number of elements that were added; of none it is 0.
func (x *Tensor) Mean(dims ...int) *Tensor { return x.reduce("mean", dims, true) }

func (x *Tensor) reduce(name string, dims []int, mean bool) *Tensor {
	gone, err := axes(dims, x.shape)
	kept, shape, n := without(x.shape, gone)
	scale := 1.0
	if mean {
		scale = 1 / float64(max(1, n))
	}
	return Apply(&Op{
		Name:      name,
		precision: full,
		Shape:     func(...[]int) ([]int, error) { return shape, err },
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			return c.sumOver(in[0], kept, gone, shape, scale)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			if mean {
				dy = c.Run("scale", dy.shape, []float64{scale}, dy)
			}
			return c.gradient(c.spread(dy, gone, c.Shape(0)))
		},
	}, x)
}

// without is a shape less some dimensions: those kept, their lengths, and how many
// elements the others have together.
func without(shape, gone []int) (kept, rest []int, n int) {
	n, rest = 1, []int{}
	for i, d := range shape {
		if slices.Contains(gone, i) {
			n *= d
		} else {
			kept, rest = append(kept, i), append(rest, d)
		}
	}
	return kept, rest, n
}

// spread is a view of t with the dimensions gone put back, repeated to shape.
func (c *Call) spread(t *Tensor, gone, shape []int) *Tensor {
	strides := make([]int, 0, len(shape))
	k := 0
	for i := range shape {
		if slices.Contains(gone, i) {
			strides = append(strides, 0)
			continue
		}
		strides = append(strides, t.strides[k])
		k++
	}
	return c.view(t, shape, strides, 0)
}
