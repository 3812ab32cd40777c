package snug

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

// over is where a kernel that goes element by element may write the gradient of x: over
// dy, which this backward is the last to read, where nothing else means that memory.
func (c *Call) over(dy, x *Tensor) *Tensor {
	if dy.dtype == x.dtype && dy.exclusive() {
		return dy
	}
	return c.New(x.dtype, dy.shape)
}
