package snug

import (
	"fmt"
	"slices"
)

// Assign gives a buffer its new value, seen once the scope has succeeded. It takes t's
// storage.
func (p *Param) Assign(t *Tensor) {
	s := t.s
	if s.replaying > 0 || !s.ok("assign") {
		return
	}
	switch {
	case !p.buffer:
		s.Fail("assign", fmt.Errorf("%s is no buffer: parameters change in Step only", p.name))
	case p.dtype != t.dtype:
		s.Fail("assign", fmt.Errorf("%w: %s is %s, got %s", ErrDType, p.name, p.dtype, t.dtype))
	case !slices.Equal(p.shape, t.shape):
		s.Fail("assign", fmt.Errorf("%w: %s is %v, got %v", ErrShape, p.name, p.shape, t.shape))
	case p.dev != s.dev:
		s.Fail("assign", fmt.Errorf("%s is not on the scope's device", p.name))
	case t.st == nil || t.st.refs.Load() == 0:
		s.Fail("assign", fmt.Errorf("%w: the result of %s", ErrFreed, t.maker()))
	}
	if s.err != nil {
		return
	}
	if !t.contiguous() || t.st.bytes != p.bytes() || t.st.fixed { // a view, or a parameter's own
		s.now = s.site("assign")
		own := s.result(t.dtype, p.shape)
		s.kernel("copy", nil, [3]uint64{}, []*Tensor{own}, t)
		if t = own; s.err != nil || t.st == nil {
			return
		}
	}
	s.assigned = slices.DeleteFunc(s.assigned, func(a assignment) bool {
		if a.p == p {
			a.t.st.release()
		}
		return a.p == p
	})
	s.assigned = append(s.assigned, assignment{p, s.take(t)})
}

// assignment is a buffer's new value. They are kept in order, and no map, so that memory is
// freed in the same order each time.
type assignment struct {
	p *Param
	t *Tensor
}

// assignedTo is what this scope has assigned to p, nil for nothing.
func (s *Scope) assignedTo(p *Param) *Tensor {
	for _, a := range s.assigned {
		if a.p == p {
			return a.t
		}
	}
	return nil
}

func (p *Param) replace(st *storage, at *site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.st.release()
	st.id, st.fixed = 0, true
	st.at = at
	st.mem.SetCategory(p.cat)
	st.mem.SetOwner(st.at)
	p.st = st
}

// Mark is where the random position and the buffers stood before some scopes. Windows
// go back to theirs.
type Mark struct {
	rand     *Rand
	tick     uint64
	released bool
	bufs     []bufferMark // those that have changed since
}

// bufferMark is a buffer's old value.
type bufferMark struct {
	p  *Param
	st *storage
}

// Mark has m, or for nil a new one, follow this scope too.
func (s *Scope) Mark(m *Mark) *Mark {
	if m == nil {
		m = &Mark{rand: s.rand, tick: s.tick}
	}
	s.marks = append(s.marks, m)
	return m
}

func (m *Mark) before(p *Param) {
	if !m.released && !slices.ContainsFunc(m.bufs, func(b bufferMark) bool { return b.p == p }) {
		m.bufs = append(m.bufs, bufferMark{p, p.st.hold()})
	}
}

// Restore goes back there and ends the mark.
func (m *Mark) Restore() {
	if m.rand != nil {
		m.rand.SetPosition(m.tick)
	}
	for _, b := range m.bufs {
		if b.p.dev != nil { // it has not been closed since
			b.p.replace(b.st.hold(), b.p.dev.here("assign", b.p))
		}
	}
	m.Release()
}

// Release forgets what Restore would need.
func (m *Mark) Release() {
	for _, b := range m.bufs {
		b.st.release()
	}
	m.bufs, m.released = nil, true
}
