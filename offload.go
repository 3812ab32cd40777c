package snug

import (
	"slices"

	"github.com/snug-ml/snug/memory"
)

// offload moves what these entries saved to the host, but no parameter and no result.
func (s *Scope) offload(tape []*entry, min int64, results []*Tensor) error {
	var move func([]save) error
	move = func(saved []save) error {
		for _, v := range saved {
			if err := move(v.needs); err != nil {
				return err
			}
			result := slices.ContainsFunc(results, func(y *Tensor) bool { return y.st == v.st })
			if st := v.st; v.from == nil && !st.fixed && !result && st.mem != nil && st.bytes >= min {
				if err := st.offload(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, e := range tape {
		if err := move(e.saved); err != nil {
			return err
		}
	}
	return nil
}

// offload moves the bytes to the host; fetch, at the next use, back.
func (st *storage) offload() error {
	b, err := st.dev.host.Alloc(memory.Request{Bytes: st.bytes, Category: memory.Activations, Owner: st.at})
	if err != nil {
		return err
	}
	copy(b.Bytes(), st.mem.Bytes())
	st.dev.mem.Free(st.mem)
	st.mem, st.away = nil, b
	return nil
}

func (s *Scope) fetch(st *storage) error {
	if st.away == nil {
		return nil
	}
	b, err := s.block(st.bytes, memory.Activations, st.at)
	if err != nil {
		return err
	}
	copy(b.Bytes(), st.away.Bytes())
	st.dev.host.Free(st.away)
	st.mem, st.away = b, nil
	return nil
}
