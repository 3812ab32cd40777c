package snug

import (
	"fmt"
	"iter"

	"github.com/snug-ml/snug/memory"
)

// A parameter on the host has a storage without mem. A scope that reads it has a storage
// of its own for it, whose home that one is: brought to the device where an operation
// reads it, and gone when the Block around, or the entry of backward, is done.

// absent reports whether st is on the host alone.
func (st *storage) absent() bool { return st.mem == nil && st.away != nil }

// category is what st is on the device for, when it comes.
func (st *storage) category() memory.Category {
	if st.home != nil {
		return memory.Parameters
	}
	return memory.Activations
}

// guest is what a scope has of a value on the host.
func (st *storage) guest() *storage {
	return (&storage{dev: st.dev, away: st.away, home: st.hold(), bytes: st.bytes, at: st.at, version: st.version, writer: st.writer, fixed: true}).hold()
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

// fixed is a new storage for p's value, on the device or on the host.
func (d *Device) fixed(p *Param, away bool) (*storage, error) {
	at := d.here("init", p)
	st := &storage{dev: d, bytes: p.bytes(), at: at, fixed: true}
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
