package snug

import "github.com/snug-ml/snug/internal/driver"

// done frees a saved value that was made again and is read no more, before backward
// allocates what comes next.
func (c *Call) done(t *Tensor) {
	if t.h != nil && t.h.frame == c.s.frame && !t.h.keep {
		t.Free()
	}
}

// give adds the i-th input's gradient where it gathers, at once, so that a weight's is
// not held while the next one is computed.
func (c *Call) give(i int, g *Tensor) {
	if s := c.s; s.err == nil && c.e.in[i].want {
		s.accumulate(c.e.in[i], g)
		c.done(g)
	}
}

// gather computes the gradient of weights, the i-th input, by a kernel. One that has a form
// that adds does so where the gradient gathers, if something is there, so that it is not in
// memory twice.
func (c *Call) gather(i int, kernel string, f []float64, in ...*Tensor) {
	s, l, dtype := c.s, c.e.in[i], in[0].dtype
	if l.dtype == Float32 && s.wide(kernel, dtype) {
		dtype = Float32
	}
	if _, err := driver.Find(kernel+" add", in[0].dtype, s.dev.backend); err == nil && l.param != nil && l.dtype == dtype && !dtype.Half() && s.err == nil {
		sum, err := l.param.sum(s)
		if s.fail(s.now, err); err == nil && sum != nil {
			s.kernel(kernel+" add", f, c.e.key, []*Tensor{sum}, in...)
			return
		}
	}
	c.give(i, c.RunAs(kernel, dtype, c.Shape(i), f, in...))
}

// over is where a kernel that goes element by element may write the gradient of x: over
// dy, which this backward is the last to read, where nothing else means that memory.
func (c *Call) over(dy, x *Tensor) *Tensor {
	if dy.dtype == x.dtype && dy.exclusive() {
		return dy
	}
	return c.New(x.dtype, dy.shape)
}
