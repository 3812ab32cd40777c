package memory

// Grower is a Source that gives addresses first and memory later. Reserved addresses
// go back by Unmap; Commit and Decommit get parts of them in whole granules.
type Grower interface {
	Reserve(bytes int64) ([]byte, error) // may return no bytes at all, as Map
	Commit(part []byte) error
	Decommit(part []byte)
}

// Mover is a Grower that gives addresses the memory of others, which then have none, without
// much ado. What was in it need not come along.
type Mover interface {
	Grower
	Move(to, from []byte) error
}

const maxRange = 1 << 40 // addresses of one segment

// extend gives memory to addresses so that a free chunk of size bytes comes to be, where
// that takes least, and takes this chunk out of the lists.
func (p *Pool) extend(size int64, in *class) (*chunk, error) {
	var at *chunk
	var skip int64 // of its addresses, so that the block ends with what is free behind them
	least := p.limit - p.stats.Reserved
	for _, s := range p.segs {
		if s.class != in {
			continue
		}
		for c := s.first; c != nil; c = c.next {
			if need := p.missing(c, size); need > 0 && (need < least || at == nil && need == least) {
				at, least, skip = c, need, 0
			}
			if n := c.next; c.state == Empty && n != nil && n.state == Free && n.size < size {
				if need := roundUp(size-n.size, p.granule); need < min(least, c.size) {
					at, least, skip = c, need, c.size-need
				}
			}
		}
	}
	if skip > 0 {
		at = p.cut(at, skip)
	}
	if at != nil {
		return p.commit(at, size)
	}
	length := roundUp(size, p.granule)
	if length > p.limit-p.stats.Reserved {
		return nil, nil
	}
	length = max(length, min(p.limit/p.granule*p.granule, maxRange))
	mem, err := p.grower.Reserve(length)
	if err != nil {
		return nil, err
	}
	return p.commit(p.segment(mem, length, in).first, size)
}

// missing is how much memory lacks to have size bytes free from c on; 0 if something
// else is in the way.
func (p *Pool) missing(c *chunk, size int64) (need int64) {
	for have := int64(0); have < size; c = c.next {
		switch {
		case c == nil || c.state != Free && c.state != Empty:
			return 0
		case c.state == Free:
			have += c.size
		default:
			n := min(c.size, roundUp(size-have, p.granule))
			need, have = need+n, have+n
		}
	}
	return need
}

// commit gives memory to what lacks it among the size bytes from c on: what is free
// elsewhere, if it may move, and else more of the device's.
func (p *Pool) commit(c *chunk, size int64) (*chunk, error) {
	s, start, end := c.seg, c.off, c.off+size
	for ; ; c = c.next {
		if c.state == Empty {
			n := min(c.size, roundUp(end-c.off, p.granule))
			if moved := p.move(s, c.off, n, start, end); moved > 0 {
				n = moved
			} else if err := p.grower.Commit(s.part(c.off, n)); err != nil {
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

// move gives up to n bytes from off on the memory of a free chunk and returns how much: of
// the shortest one that has a granule and, as the system keeps a list of pieces, a 16th of n,
// and that is not among what grows, from start to end. Not from a layout that has all its
// memory: what went elsewhere would have to come back in each round.
func (p *Pool) move(s *segment, off, n, start, end int64) int64 {
	if p.mover == nil || p.plan != nil && p.plan.settled {
		return 0
	}
	for _, l := range p.classes {
		if l.queue != s.class.queue { // it may still be using it
			continue
		}
		for _, c := range l.free[l.index(max(p.granule, n/16), 0, 0):] {
			from, to := p.granules(c)
			to = min(to, from+n)
			if from >= to || c.seg == s && c.off < end && c.off+c.size >= start {
				continue
			}
			if p.mover.Move(s.part(off, to-from), c.seg.part(from, to-from)) != nil {
				return 0
			}
			p.vacate(c, from, to)
			p.stats.Moved += to - from
			return to - from
		}
	}
	return 0
}

// granules are the whole ones in a chunk.
func (p *Pool) granules(c *chunk) (from, to int64) {
	return roundUp(c.off, p.granule), (c.off + c.size) / p.granule * p.granule
}

// shrink takes the memory of whole granules from the free chunks of s.
func (p *Pool) shrink(s *segment) {
	for c := s.first; c != nil; c = c.next {
		if from, to := p.granules(c); c.state == Free && from < to {
			p.grower.Decommit(s.part(from, to-from))
			c = p.vacate(c, from, to)
		}
	}
}

// vacate leaves addresses in a free chunk without memory, and returns the chunk that they
// are in.
func (p *Pool) vacate(c *chunk, from, to int64) *chunk {
	s := c.seg
	s.class.take(c)
	if to < c.off+c.size {
		s.class.put(p.cut(c, to-c.off))
	}
	if from > c.off {
		rest := p.cut(c, from-c.off)
		s.class.put(c)
		c = rest
	}
	p.account(s, Usage{Reserved: -c.size})
	if c.state = Empty; c.next != nil && c.next.state == Empty {
		p.absorb(c)
	}
	if c.prev != nil && c.prev.state == Empty {
		c = c.prev
		p.absorb(c)
	}
	return c
}

// part is a stretch of the segment's memory, nil over a dry source.
func (s *segment) part(off, size int64) []byte {
	if s.bytes == nil {
		return nil
	}
	return s.bytes[off : off+size : off+size]
}
