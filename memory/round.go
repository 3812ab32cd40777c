package memory

import (
	"math"
	"slices"
)

// Steps of training ask for the same memory in the same order. Placed one by one, as they come, blocks leave gaps
// between them, and free memory has to move in every step anew. Known as a whole they can be laid out with hardly any.

const (
	laidOut    = 16 << 10 // requests below this are left to small segments
	longest    = 1 << 13  // requests of a round that is remembered
	remembered = 8        // rounds
)

// A round is what was asked for between two calls of Pool.Round. Its layout is good for one segment and for what was
// in it when the round began.
type round struct {
	asked   []asked
	next    *round // what came after it last time
	with    uint64 // a hash of the blocks there were when it began last time, wherever they lay
	seg     *segment
	around  uint64 // a hash of what seg had in use when it was laid out, and where
	layouts int    // so far
	settled bool   // each block has been where the layout has it
}

// asked is one request of a round; its index is the time at which it came.
type asked struct {
	size  int64
	until int32 // the first request that came after it was freed
	off   int64 // its place in the segment
}

// rounds are what a pool knows of them.
type rounds struct {
	known     []*round // the latest last
	now       *round   // under way
	number    int      // of it
	last      *round   // the one before, if it is known
	plan      *round   // what now is like so far, if that is laid out
	at        int      // its next request
	undecided bool     // nothing has been asked for yet
	missed    bool     // a place was not to be had
	with      uint64
	wrong     int // layouts one after the other that were for another round
	wait      int // rounds before the next one is made
}

// Round says that a step begins: what it asks for may be the same as after an earlier call. If that is so each block
// goes where it is best for all of them together. Only pools whose memory moves (Config.Moving) make use of it, and
// nothing but the places of blocks depends on it.
func (p *Pool) Round() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mover == nil || p.closed {
		return
	}
	if p.now == nil {
		p.now = &round{}
	} else {
		p.learn()
	}
	p.number++
	p.now.asked, p.plan, p.at, p.undecided, p.missed = p.now.asked[:0], nil, 0, true, false
}

// learn takes up the round that ends.
func (p *Pool) learn() {
	followed := p.plan != nil && p.at == len(p.plan.asked)
	switch {
	case followed:
		p.wrong = 0
	case p.at > 0:
		p.wrong = min(2*p.wrong+1, 63)
		p.wait = p.wrong
	}
	before := p.last
	p.last = p.recall()
	if before != nil {
		before.next = p.last
	}
	if p.last != nil {
		p.last.with = p.with
		p.last.settled = followed && !p.missed && p.last == p.plan && p.last.seg != nil
	}
}

// recall returns the round that ends or, if its requests were the same, an earlier one: each block then lives as long
// as in either. It is nil if nothing was asked for, or too much.
func (p *Pool) recall() *round {
	n := p.now
	if len(n.asked) == 0 || len(n.asked) > longest {
		return nil
	}
	same := func(r *round) bool {
		return slices.EqualFunc(r.asked, n.asked, func(a, b asked) bool { return a.size == b.size })
	}
	if i := slices.IndexFunc(p.known, same); i >= 0 {
		r := p.known[i]
		for k := range r.asked {
			if u := n.asked[k].until; u > r.asked[k].until {
				r.asked[k].until, r.seg = u, nil
			}
		}
		p.known = append(slices.Delete(p.known, i, i+1), r)
		return r
	}
	if len(p.known) == remembered {
		p.known = slices.Delete(p.known, 0, 1)
	}
	p.known = append(p.known, n)
	p.now = &round{}
	return n
}

// decide chooses, at the first request of a round, what the round may be like: one that began with this request and,
// if there is any, with the same blocks in use.
func (p *Pool) decide(size int64) {
	p.undecided, p.with = false, 0
	var in *segment // the oldest for large blocks
	for _, s := range p.segs {
		if s.class.queue != 0 {
			continue
		}
		if in == nil && !s.class.small {
			in = s
		}
		for c := s.first; c != nil; c = c.next {
			if c.state == Active && c.size >= laidOut {
				p.with += mix(0, uint64(c.size))
			}
		}
	}
	if in == nil || p.last == nil {
		return
	}
	likely := []*round{p.last.next, p.last}
	for _, r := range slices.Backward(p.known) {
		likely = append(likely, r)
	}
	likely = slices.DeleteFunc(likely, func(r *round) bool { return r == nil || r.asked[0].size != size })
	i := slices.IndexFunc(likely, func(r *round) bool { return r.with == p.with })
	if len(likely) == 0 {
		return
	}
	r, around := likely[max(i, 0)], in.taken()
	if r.seg == in && r.around == around {
		p.plan = r
	} else if p.wait--; p.wait < 0 && r.lay(in) {
		p.plan, r.around = r, around
	}
}

// taken is a hash of what is in use.
func (s *segment) taken() (h uint64) {
	for c := s.first; c != nil; c = c.next {
		if c.state != Free && c.state != Empty {
			h = mix(mix(h, uint64(c.off)), uint64(c.size))
		}
	}
	return h
}

// mix is a round of MurmurHash3's finalizer.
func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0xff51afd7ed558ccd
	return h ^ h>>33
}

// record adds a block to the round under way.
func (p *Pool) record(c *chunk) {
	r := p.now
	if r == nil || c.size < laidOut || c.seg.class.queue != 0 || len(r.asked) > longest {
		return
	}
	c.round, c.nth = p.number, len(r.asked)
	r.asked = append(r.asked, asked{size: c.size, until: math.MaxInt32})
	if p.plan != nil {
		if p.at++; p.at > len(p.plan.asked) || p.plan.asked[p.at-1].size != c.size {
			p.plan.seg, p.plan = nil, nil // now is another one, which may begin like that
		}
	}
}

// recordFree says when it ended.
func (p *Pool) recordFree(c *chunk) {
	if c.round > 0 && c.round == p.number {
		p.now.asked[c.nth].until = int32(len(p.now.asked))
	}
}

// place takes the free chunk out of the lists that begins where the layout has the next request; nil if this is
// another one, or something is in the way.
func (p *Pool) place(size int64, queue int) (*chunk, error) {
	if p.now == nil || size < laidOut || queue != 0 {
		return nil, nil
	}
	if p.undecided {
		p.decide(size)
	}
	if p.plan == nil || p.at == len(p.plan.asked) || p.plan.asked[p.at].size != size {
		return nil, nil
	}
	s, start := p.plan.seg, p.plan.asked[p.at].off
	end := start + size
	c := s.first
	for c.off+c.size <= start {
		c = c.next
	}
	from := start / p.granule * p.granule // where memory would begin, if there is none
	var need int64
	for n := c; n != nil && n.off < end; n = n.next {
		switch n.state {
		case Empty:
			need += roundUp(min(end, n.off+n.size), p.granule) - max(from, n.off)
		case Free:
		default:
			p.missed = true
			return nil, nil
		}
	}
	if need > p.limit-p.stats.Reserved || p.trim > 0 && p.stats.Reserved+need > p.trim {
		p.missed = true
		return nil, nil
	}
	if c.state == Empty && c.off < from {
		c = p.cut(c, from-c.off)
	}
	c, err := p.commit(c, end-c.off)
	if c != nil && c.off < start {
		rest := p.cut(c, start-c.off)
		s.class.put(c)
		c = rest
	}
	return c, err
}
