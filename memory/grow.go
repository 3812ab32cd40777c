package memory

// Grower is a Source that gives addresses first and memory later. Reserved addresses
// go back by Unmap; Commit and Decommit get parts of them in whole granules of 2 MiB.
type Grower interface {
	Reserve(bytes int64) ([]byte, error) // may return no bytes at all, as Map
	Commit(part []byte) error
	Decommit(part []byte)
}

const maxRange = 1 << 40 // addresses of one segment

// extend gives memory to addresses so that a free chunk of size bytes comes to be, where
// that takes least, and takes this chunk out of the lists.
func (p *Pool) extend(size int64, in *class) (*chunk, error) {
	var at *chunk
	least := p.limit - p.stats.Reserved
	for _, s := range p.segs {
		if s.class != in {
			continue
		}
		for c := s.first; c != nil; c = c.next {
			if need := missing(c, size); need > 0 && (need < least || at == nil && need == least) {
				at, least = c, need
			}
		}
	}
	if at != nil {
		return p.commit(at, size)
	}
	length := roundUp(size, granule)
	if length > p.limit-p.stats.Reserved {
		return nil, nil
	}
	length = max(length, min(p.limit/granule*granule, maxRange))
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

// commit gives memory to what lacks it among the size bytes from c on.
func (p *Pool) commit(c *chunk, size int64) (*chunk, error) {
	s, end := c.seg, c.off+size
	for ; ; c = c.next {
		if c.state == Empty {
			n := min(c.size, roundUp(end-c.off, granule))
			if err := p.grower.Commit(s.part(c.off, n)); err != nil {
				return nil, err
			}
			if n < c.size {
				p.cut(c, n)
			}
			p.account(s, Usage{Reserved: n})
			c = p.join(c)
		}
		if c.off+c.size >= end {
			s.class.take(c)
			return c, nil
		}
	}
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
		p.grower.Decommit(s.part(c.off, c.size))
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

// part is a stretch of the segment's memory, nil over a dry source.
func (s *segment) part(off, size int64) []byte {
	if s.bytes == nil {
		return nil
	}
	return s.bytes[off : off+size : off+size]
}
