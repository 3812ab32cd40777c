package snug

import (
	"context"
	"fmt"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/memory"
)

// GetParam waits and returns a copy of a parameter's or buffer's value, row-major; T as in
// Download.
func GetParam[T Number](p *Param) (v []T, err error) {
	if p.dev == nil {
		return nil, fmt.Errorf("get %s: not on a device: call nn.Init", p.name)
	}
	err = p.dev.Infer(context.Background(), func(s *Scope) (err error) {
		v, err = Download[T](p.In(s))
		return err
	})
	return v, err
}

// SetParam gives a parameter or buffer its value, row-major; numbers are converted to its
// type. While a scope reads it that is ErrInUse. A gradient it has stays.
func SetParam[T Number](p *Param, v []T) error {
	if p.dev == nil {
		return fmt.Errorf("set %s: not on a device: call nn.Init", p.name)
	}
	if len(v) != p.Len() {
		return fmt.Errorf("set %s: %w: %d values for %v", p.name, ErrShape, len(v), p.shape)
	}
	return p.alone(func() error {
		st := p.st
		if p.buffer && st.refs.Load() > 1 { // a window holds the old value
			b, err := p.dev.mem.Alloc(memory.Request{Bytes: st.bytes, Category: p.cat, Owner: p.st.at})
			if err != nil {
				return fmt.Errorf("set %s: %w", p.name, err)
			}
			st = (&storage{dev: p.dev, mem: b, bytes: st.bytes, at: p.st.at, fixed: true}).hold()
			p.st.release()
			p.st = st
		}
		st.version++
		st.writer = p.dev.here("set", p)
		if !p.dev.values {
			return nil
		}
		from := driver.Array{Type: dtypeOf[T](), Shape: p.shape, Strides: driver.RowMajor(p.shape), Data: make([]byte, len(v)*dtypeOf[T]().Size())}
		upload(from.Data, v)
		return p.write(st, from)
	})
}
