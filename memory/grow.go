package memory

// Grower is a Source that gives addresses first and memory later. Reserved addresses
// go back by Unmap; Commit and Decommit get parts of them in whole granules of 2 MiB.
type Grower interface {
	Reserve(bytes int64) ([]byte, error) // may return no bytes at all, as Map
	Commit(part []byte) error
	Decommit(part []byte)
}

const maxRange = 1 << 40 // addresses of one segment

// extend gives memory to the first addresses where that makes a free chunk of size
// bytes, and takes this chunk out of the lists.
func (p *Pool) extend(size int64, in *class) (*chunk, error) {
	for _, s := range p.segs {
		if s.class != in {
			continue
		}
		for c := s.first; c != nil; c = c.next {
			if need := missing(c, size); need > 0 && p.stats.Reserved+need <= p.limit {
				return p.commit(c, size)
			}
		}
	}
	if p.stats.Reserved+roundUp(size, granule) > p.limit {
		return nil, nil
	}
	length := max(roundUp(size, granule), min(p.limit/granule*granule, maxRange))
	mem, err := p.grower.Reserve(length)
	if err != nil {
		return nil, err
	}
	return p.commit(p.segment(mem, length, in).first, size)
}

// missing is how much memory lacks to have size bytes free from c on; 0 if something
// else is in the way.
func missing(c *chunk, size int64) (need int64) {
	for have := int64(0); have < size; c = c.next {
		switch {
		case c == nil || c.state != Free && c.state != Empty:
			return 0
		case c.state == Free:
			have += c.size
		default:
			n := min(c.size, roundUp(size-have, granule))
			need, have = need+n, have+n
		}
	}
	return need
}

func (p *Pool) commit(c *chunk, size int64) (*chunk, error) {
	s, from := c.seg, c.off
	for c != nil && c.off < from+size {
		if c.state == Free {
			c = c.next
			continue
		}
		if n := roundUp(from+size-c.off, granule); n < c.size {
			p.cut(c, n)
		}
		if err := p.grower.Commit(s.part(c)); err != nil {
			return nil, err
		}
		next := c.next
		p.account(s, Usage{Reserved: c.size})
		p.join(c)
		c = next
	}
	return s.class.find(size), nil
}

// shrink takes the memory of whole granules from the free chunks of s.
func (p *Pool) shrink(s *segment) {
	for c := s.first; c != nil; c = c.next {
		from, to := roundUp(c.off, granule), (c.off+c.size)/granule*granule
		if c.state != Free || from >= to {
			continue
		}
		s.class.take(c)
		if to < c.off+c.size {
			s.class.put(p.cut(c, to-c.off))
		}
		if from > c.off {
			rest := p.cut(c, from-c.off)
			s.class.put(c)
			c = rest
		}
		p.grower.Decommit(s.part(c))
		p.account(s, Usage{Reserved: -c.size})
		if c.state = Empty; c.next != nil && c.next.state == Empty {
			p.absorb(c)
		}
		if c.prev != nil && c.prev.state == Empty {
			c = c.prev
			p.absorb(c)
		}
	}
}

func (s *segment) part(c *chunk) []byte {
	if s.bytes == nil {
		return nil
	}
	return s.bytes[c.off : c.off+c.size]
}
