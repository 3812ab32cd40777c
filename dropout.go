package snug

import "fmt"

// Dropout sets elements to 0 with probability p and scales the others by 1/(1−p), in
// training mode; else it is x (Srivastava et al., 2014). It saves nothing: backward draws
// the mask again.
func (x *Tensor) Dropout(p float64) *Tensor {
	s := x.s
	if !(p >= 0 && p < 1) {
		s.Fail("dropout", fmt.Errorf("probability %v, one in [0,1) wanted", p))
	}
	if !s.Training() || p == 0 {
		return x
	}
	drop := func(c *Call, t *Tensor) *Tensor { return c.Run("dropout", t.shape, []float64{p}, t) }
	return Apply(&Op{
		Name: "dropout",
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			c.Draw()
			return drop(c, in[0])
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor { return c.gradient(drop(c, dy)) },
	}, x)
}
