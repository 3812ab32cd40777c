package snug

import "slices"

// Var is the mean squared deviation from the mean over the given dimensions, which vanish;
// all of them for none. Unbiased divides by one less than the number n of elements. The
// gradient is 2·(x−mean)/n·dy, for which it saves x and the means.
func (x *Tensor) Var(unbiased bool, dims ...int) *Tensor {
	gone, err := axes(dims, x.shape)
	kept, shape, n := without(x.shape, gone)
	by := float64(n)
	if unbiased {
		by--
	}
	return Apply(&Op{
		Name:      "var",
		precision: full,
		Shape:     func(...[]int) ([]int, error) { return shape, err },
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			x := c.permuted(in[0], append(slices.Clone(kept), gone...))
			wide := x.dtype
			if wide.Half() {
				wide = Float32
			}
			mean := c.RunAs("sum", wide, shape, []float64{float64(len(gone)), 1 / float64(n)}, x)
			c.Save("x", in[0])
			c.Save("mean", mean)
			return c.Run("square deviation", shape, []float64{float64(len(gone)), 1 / by}, x, mean)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			shape := c.Shape(0)
			mean, dy := c.spread(c.Saved("mean"), gone, shape), c.spread(dy, gone, shape)
			return c.gradient(c.Run("var backward", shape, []float64{2 / by}, c.Saved("x"), mean, dy))
		},
	}, x)
}
