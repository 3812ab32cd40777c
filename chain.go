package snug

// Chain passes x through functions, one after the other, and frees the result of each once
// the next has read it, but the last one and what backward needs.
func Chain(x *Tensor, fns ...func(*Tensor) *Tensor) *Tensor {
	s := x.s
	f := s.push(s.frame.mode)
	for _, fn := range fns {
		y := fn(x)
		if x.h != nil && x.h.frame == f && x.h != y.h && !x.h.keep {
			x.Free()
		}
		x = y
	}
	s.pop(x)
	return x
}
