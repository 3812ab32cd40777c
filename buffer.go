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
	if old := s.assigned[p]; old != nil {
		old.st.release()
	}
	if s.assigned == nil {
		s.assigned = map[*Param]*Tensor{}
	}
	s.assigned[p] = s.take(t)
}

func (p *Param) replace(st *storage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.st.release()
	st.id, st.fixed = 0, true
	st.at = p.dev.here("assign", p)
	st.mem.SetCategory(p.cat)
	st.mem.SetOwner(st.at)
	p.st = st
}

// Mark is where the random position and the buffers stood before some scopes. Windows
// go back to theirs.
type Mark struct {
	rand *Rand
	tick uint64
	bufs map[*Param]*storage // those that have changed since: their old values
}

// Mark has m, or for nil a new one, follow this scope too.
func (s *Scope) Mark(m *Mark) *Mark {
	if m == nil {
		m = &Mark{s.rand, s.tick, map[*Param]*storage{}}
	}
	s.marks = append(s.marks, m)
	return m
}

func (m *Mark) before(p *Param) {
	if m.bufs != nil && m.bufs[p] == nil {
		m.bufs[p] = p.st.hold()
	}
}

// Restore goes back there and ends the mark.
func (m *Mark) Restore() {
	if m.rand != nil {
		m.rand.SetPosition(m.tick)
	}
	for p, st := range m.bufs {
		if p.dev != nil { // it has not been closed since
			p.replace(st.hold())
		}
	}
	m.Release()
}

// Release forgets what Restore would need.
func (m *Mark) Release() {
	for _, st := range m.bufs {
		st.release()
	}
	m.bufs = nil
}
