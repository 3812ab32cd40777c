package memory

import (
	"cmp"
	"slices"
)

// holding is a block's share in a table. Its owner is asked after the lock is gone: it
// may need locks of its own, or this pool.
type holding struct {
	owner Owner
	bytes int64
}

func (p *Pool) held() []holding {
	h := make([]holding, 0, p.stats.Blocks)
	for _, s := range p.segs {
		for c := s.first; c != nil; c = c.next {
			if c.state == Active {
				h = append(h, holding{c.owner, c.size})
			}
		}
	}
	return h
}

func byPath(held []holding) map[string]int64 {
	m := map[string]int64{}
	for _, h := range held {
		path := ""
		if h.owner != nil {
			path = h.owner.Path()
		}
		m[path] += h.bytes
	}
	return m
}

// ByPath is allocated bytes by module path; "" has what no module owns.
func (p *Pool) ByPath() map[string]int64 {
	p.mu.Lock()
	held := p.held()
	p.mu.Unlock()
	return byPath(held)
}

func largest(m map[string]int64, n int) []Holder {
	var l []Holder
	for path, bytes := range m {
		l = append(l, Holder{path, bytes})
	}
	slices.SortFunc(l, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Path, b.Path))
	})
	return l[:min(n, len(l))]
}

// where is " in layer1.0.conv1, conv2d at net.go:31", less what is unknown.
func where(path, op, at string) (s string) {
	for _, part := range [][2]string{{" in ", path}, {", ", op}, {" at ", at}} {
		if part[1] != "" {
			s += part[0] + part[1]
		}
	}
	return s
}
