package snug

import (
	"context"
	"fmt"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
)

// Accumulate adds t to a buffer, seen once the scope has succeeded. Unlike Assign of a sum
// it may be called several times in a scope: all of them count, recomputed ones once.
func (p *Param) Accumulate(t *Tensor) {
	s := t.s
	if s.replaying > 0 || !s.ok("accumulate") {
		return
	}
	old := s.assignedTo(p)
	if old == nil {
		old = p.In(s)
	}
	s.now = s.site("accumulate")
	if s.err == nil && !slices.Equal(p.shape, t.shape) {
		s.fail(s.now, fmt.Errorf("%w: %s is %v, got %v", ErrShape, p.name, p.shape, t.shape))
	}
	if s.err == nil {
		s.fail(s.now, s.ready(t))
	}
	sum := s.result(p.dtype, p.shape)
	s.kernel("add", nil, [3]uint64{}, []*Tensor{sum}, old, t)
	p.Assign(sum)
}

// Lerp moves p, a parameter or buffer, to p + w·(q − p); types may differ. A w of 1, and
// every w where p is no float, copies. While a scope reads p that is ErrInUse. nn.Lerp is
// made of it.
func (p *Param) Lerp(q *Param, w float64) error {
	switch {
	case p.dev == nil || q.dev == nil:
		return fmt.Errorf("lerp %s: not on a device: call nn.Init", p.name)
	case !slices.Equal(p.shape, q.shape):
		return fmt.Errorf("lerp %s: %w: %v and %v", p.name, ErrShape, p.shape, q.shape)
	case p.dev.values && !q.dev.values:
		return fmt.Errorf("lerp %s: %w", p.name, ErrNoValues)
	}
	return q.dev.Infer(context.Background(), func(s *Scope) error {
		from := q.In(s)
		if s.err != nil {
			return s.err
		}
		if err := s.ready(from); err != nil {
			return err
		}
		return p.alone(func() error {
			x, free, err := p.near(from)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			defer free()
			st := p.st
			if p.buffer { // a window may hold the old value
				if st, err = p.dev.fixed(p, st.absent()); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				defer p.st.release()
			}
			args := &driver.Args{Out: []driver.Array{p.array(st)}, In: []driver.Array{x}}
			kernel := "cast"
			if p.dtype.Float() && w != 1 {
				kernel, args.F, args.In = "lerp", []float64{w, 1}, []driver.Array{p.array(p.st), x}
			}
			st.version++
			st.writer = p.dev.here("lerp", p)
			p.st = st
			if p.dev.apart && st.absent() {
				return p.launchOnHost(kernel, args)
			}
			return p.launch(kernel, args)
		})
	})
}
