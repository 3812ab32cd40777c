package snug

import (
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/snug-ml/snug/memory"
)

// A parameter on the host has a storage without mem. A scope that reads it has a storage
// of its own for it, whose home that one is: brought to the device where an operation
// reads it, and gone when the Block around, or the entry of backward, is done.

// absent reports whether st is on the host alone.
func (st *storage) absent() bool { return st.mem == nil && st.away != nil }

// category is what st is on the device for, when it comes.
func (st *storage) category() memory.Category {
	switch {
	case st.home != nil:
		return memory.Parameters
	case st.grad:
		return memory.Gradients
	}
	return memory.Activations
}

// guest is what a scope has of a value on the host.
func (st *storage) guest() *storage {
	return (&storage{dev: st.dev, away: st.away, home: st.hold(), bytes: st.bytes, at: st.at, version: st.version, writer: st.writer, fixed: true}).hold()
}

// route is where a parameter on the host stands among those that forward reads: which one it
// is, and which one came after it the last time.
type route struct {
	p    *Param
	then atomic.Pointer[Param]
}

// follow notes that a parameter has come to be used, and begins the way of those that came
// after it the last time, as far as there is room. In the second run of a block that is for
// the block's own.
func (s *Scope) follow(st *storage, ahead bool) error {
	r := st.home.route
	if s.rerun == nil {
		if s.visited != nil {
			s.visited.then.Store(r.p)
		}
		s.visited = r
	}
	if st.been = true; !ahead {
		s.front = r.then.Load()
	}
	for p := s.front; p != nil; p = s.front {
		next := s.guest(p)
		if next == nil || next.mem != nil || next.been && s.rerun == nil {
			s.front = nil
		} else if on, err := s.come(next); on && err == nil {
			s.front = next.home.route.then.Load()
		} else {
			return err
		}
	}
	return nil
}

// guest is what s has of a parameter on the host, nil where that has left it.
func (s *Scope) guest(p *Param) *storage {
	if e := s.rerun; e != nil && !slices.ContainsFunc(e.in, func(l *slot) bool { return l != nil && l.param == p }) {
		return nil
	}
	t := s.params[p]
	if t == nil {
		t = s.blank(p.dtype, p.shape)
		if p.enter(s, t) != nil {
			return nil
		}
		s.params[p] = t
		s.order = append(s.order, p)
	}
	if t.st == nil || t.st.home == nil {
		return nil
	}
	return t.st
}

// sendHome frees what was brought for parameters since n.
func (s *Scope) sendHome(n int) {
	for _, st := range s.guests[n:] {
		if st.mem != nil && st.move == nil {
			st.dev.mem.Free(st.mem)
			st.mem = nil
		}
	}
	s.guests = s.guests[:n]
}

// castAgain is the recipe of a guest's cast: saved, it holds no memory.
func castAgain(t *Tensor, to DType) *entry {
	op := &Op{Name: "cast", Remake: func(c *Call) *Tensor { return c.s.inType(c.Saved("x"), to) }}
	return &entry{op: op, site: t.s.now, saved: []save{t.save("x")}}
}

// ToHost moves parameters' values to the host, all or none; where they are not placed yet,
// nn.Init places them there. Buffers stay. For package offload.
func ToHost(ps iter.Seq2[string, *Param]) (err error) {
	type value struct {
		p  *Param
		st *storage
	}
	var old []value
	defer func() {
		for _, v := range old {
			if err != nil {
				v.p.mu.Lock()
				v.p.st, v.st = v.st, v.p.st
				v.p.mu.Unlock()
			}
			v.st.release()
		}
	}()
	var marked []*Param
	for name, p := range ps {
		if p.buffer {
			continue
		}
		marked = append(marked, p)
		if p.dev == nil || p.st.absent() {
			continue
		}
		if err := p.alone(func() error {
			st, err := p.dev.fixed(p, true)
			if err != nil {
				return err
			}
			if err := p.dev.download(st.away.Bytes(), p.st.mem.Bytes()); err != nil {
				st.release()
				return err
			}
			st.version, st.writer = p.st.version, p.st.writer
			old = append(old, value{p, p.st})
			p.st = st
			return nil
		}); err != nil {
			return fmt.Errorf("offload %s: %w", name, err)
		}
	}
	for _, p := range marked {
		p.away = true
	}
	return nil
}

// GradsToHost has the gradients of these parameters wait on the host, from when they are
// final in a Backward until a step. For package offload.
func GradsToHost(ps iter.Seq2[string, *Param]) {
	for _, p := range ps {
		p.mu.Lock()
		p.gradAway = true
		p.mu.Unlock()
	}
}

// final is for a parameter to whose gradient a Backward will add no more.
func (s *Scope) final(p *Param, b *backward) error {
	switch st := p.grad; {
	case b.onGrad != nil:
		return p.Finish(s, b.onGrad)
	case st != nil && p.gradAway && !st.absent() && st.move == nil:
		return s.send(st, s.dev.host)
	}
	return nil
}

// land ends what is on its way to the host when the scope ends: gradients.
func (t *traffic) land() {
	for len(t.moves) > 0 {
		t.moves[0].end(false)
	}
}

// fixed is a new storage for p's value, on the device or on the host.
func (d *Device) fixed(p *Param, away bool) (*storage, error) {
	at := d.here("init", p)
	st := &storage{dev: d, bytes: p.bytes(), at: at, fixed: true, route: &route{p: p}}
	r := memory.Request{Bytes: st.bytes, Category: p.cat, Owner: at}
	var err error
	if away {
		st.tier = d.host
		st.away, err = d.host.Alloc(r)
	} else {
		st.mem, err = d.mem.Alloc(r)
	}
	return st.hold(), err
}
