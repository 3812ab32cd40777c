package memory

import (
	"fmt"
	"slices"
)

const (
	unit         = 512       // every block is a multiple of it
	smallMax     = 1 << 20   // requests up to this come from small segments
	smallSegment = 2 << 20   // and their size
	largeMin     = 10 << 20  // requests from here on have a segment of their own
	largeSegment = 20 << 20  // for those between the two
	granule      = 2 << 20   // what segments are rounded to, and grow by
	fineGranule  = 256 << 10 // what they grow by where memory moves
)

// class separates free chunks that must not serve each other's requests.
type class struct {
	pool  *Pool
	queue int
	small bool
	free  []*chunk // sorted by size, segment, offset
}

// segment is memory that the device gave at once or, where it grows, addresses for it.
type segment struct {
	number       int // in order of creation: what breaks ties, never an address
	class        *class
	bytes        []byte
	size, active int64 // of memory; of chunks in use
	first        *chunk
}

// chunk is a stretch of a segment, without gaps to its neighbours.
type chunk struct {
	seg        *segment
	off, size  int64
	state      State
	prev, next *chunk
	use        // of an active one
}

// State of a stretch of a segment.
type State uint8

const (
	Free    State = iota // cached
	Active               // a block
	Pending              // a freed block that another queue may still use
	Empty                // addresses of a growable segment that have no memory
)

var states = [...]string{"free", "active", "pending", "empty"}

func (s State) String() string { return states[s] }

func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(states[:], string(text))
	if i < 0 {
		return fmt.Errorf("memory: no state %q", text)
	}
	*s = State(i)
	return nil
}

func (p *Pool) class(queue int, small bool) *class {
	for _, c := range p.classes {
		if c.queue == queue && c.small == small {
			return c
		}
	}
	c := &class{pool: p, queue: queue, small: small}
	p.classes = append(p.classes, c)
	return c
}

// index is where a free chunk of these properties is or would be.
func (l *class) index(size int64, number int, off int64) int {
	lo, hi := 0, len(l.free)
	for lo < hi {
		mid := (lo + hi) / 2
		c := l.free[mid]
		if c.size < size || c.size == size && (c.seg.number < number || c.seg.number == number && c.off < off) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// find takes the best fit; among equals that of the oldest segment, and in it the first.
func (l *class) find(size int64) *chunk {
	i := l.index(size, 0, 0)
	if i == len(l.free) {
		return nil
	}
	c := l.free[i]
	l.free = slices.Delete(l.free, i, i+1)
	return c
}

func (l *class) take(c *chunk) {
	i := l.index(c.size, c.seg.number, c.off)
	l.free = slices.Delete(l.free, i, i+1)
}

func (l *class) put(c *chunk) {
	c.state = Free
	l.free = slices.Insert(l.free, l.index(c.size, c.seg.number, c.off), c)
}

// split gives back what c has beyond size. So a block takes what was asked for, rounded,
// wherever it lies.
func (p *Pool) split(c *chunk, size int64) {
	if c.size > size {
		c.seg.class.put(p.cut(c, size))
	}
}

// cut ends c after size bytes and returns the chunk that follows.
func (p *Pool) cut(c *chunk, size int64) *chunk {
	r := p.spare
	if r != nil {
		p.spare = r.next
	} else {
		r = new(chunk)
	}
	*r = chunk{seg: c.seg, off: c.off + size, size: c.size - size, state: c.state, prev: c, next: c.next}
	if r.next != nil {
		r.next.prev = r
	}
	c.next, c.size = r, size
	return r
}

// absorb makes c's next chunk a part of it.
func (p *Pool) absorb(c *chunk) {
	n := c.next
	c.size += n.size
	if c.next = n.next; c.next != nil {
		c.next.prev = c
	}
	*n = chunk{next: p.spare}
	p.spare = n
}

// join puts c among the free, as one chunk with its free neighbours, and returns this.
func (p *Pool) join(c *chunk) *chunk {
	l := c.seg.class
	if n := c.next; n != nil && n.state == Free {
		l.take(n)
		p.absorb(c)
	}
	if a := c.prev; a != nil && a.state == Free {
		l.take(a)
		p.absorb(a)
		c = a
	}
	l.put(c)
	return c
}

// grow gets more memory for a chunk of size bytes, within the limit. The last segment
// is as long as the limit leaves room for.
func (p *Pool) grow(size int64, in *class) (*chunk, error) {
	if p.grower != nil {
		return p.extend(size, in)
	}
	want := roundUp(size, granule)
	switch {
	case in.small:
		want = smallSegment
	case size < largeMin:
		want = largeSegment
	}
	want = min(want, (p.limit-p.stats.Reserved)/unit*unit)
	if want < size {
		return nil, nil
	}
	mem, err := p.src.Map(want)
	if err != nil {
		return nil, err
	}
	s := p.segment(mem, want, in)
	p.account(s, Usage{Reserved: want})
	return s.first, nil
}

// segment of length bytes that hold nothing yet.
func (p *Pool) segment(mem []byte, length int64, in *class) *segment {
	s := &segment{number: p.made, class: in, bytes: mem}
	s.first = &chunk{seg: s, size: length, state: Empty}
	p.made++
	p.segs = append(p.segs, s)
	p.account(s, Usage{Segments: 1})
	return s
}

// empty returns to the device what it can take back.
func (p *Pool) empty() {
	p.segs = slices.DeleteFunc(p.segs, func(s *segment) bool {
		if p.grower != nil {
			p.shrink(s)
		} else if s.active == 0 {
			s.class.take(s.first)
			p.account(s, Usage{Reserved: -s.size})
		}
		if s.size > 0 {
			return false
		}
		p.account(s, Usage{Segments: -1})
		p.src.Unmap(s.bytes)
		return true
	})
}
