package snug

import "slices"

// What a recipe gave in backward is remembered while more is to read it, or a chain of n
// recipes would be run n²/2 times. That takes no memory: before a request would raise the
// peak or have the device give more, what is remembered goes.

// remember is told what e's recipe gave.
func (s *Scope) remember(e *entry, t *Tensor) {
	if s.err != nil || s.walking == nil || e.readers < 2 || t.st == nil || t.st.fixed {
		return
	}
	t.st.hold()
	e.remade = t.alias()
	s.remade = append(s.remade, e)
}

// remembered is what e's recipe gave, nil if it is to run again.
func (s *Scope) remembered(e *entry) *Tensor {
	if t := e.remade; t != nil && t.seen == t.st.version {
		return s.own(t.alias())
	}
	s.forget(e)
	return nil
}

func (s *Scope) forget(e *entry) {
	if e.remade != nil {
		i := slices.Index(s.remade, e)
		s.remade = slices.Delete(s.remade, i, i+1)
		e.remade.st.release()
		e.remade = nil
	}
}

// forgetOne frees what was remembered first, and with it, of a chain, what is read last.
func (s *Scope) forgetOne() bool {
	if len(s.remade) == 0 {
		return false
	}
	s.forget(s.remade[0])
	return true
}

// toSpare is what frees it, for the allocator: nil where there is nothing.
func (s *Scope) toSpare() func() bool {
	if len(s.remade) == 0 {
		return nil
	}
	return s.sparing
}

// read counts who is still to read what e's recipe gives.
func (e *entry) read(by int) {
	if e.readers += by; e.readers == 0 && e.remade != nil {
		e.remade.s.forget(e)
	}
}
