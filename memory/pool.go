package memory

import (
	"errors"
	"math"
	"slices"
	"sync"
)

// Source is a device's raw memory. Map may return no bytes at all (the dry one).
type Source interface {
	Map(bytes int64) ([]byte, error)
	Unmap([]byte)
}

// Filler is a Source that can write to its memory; builds with the tag snugdebug use it.
type Filler interface {
	Fill(mem []byte, value byte)
}

// Event is what a queue had been given to do at one moment.
type Event interface {
	Done() bool
	Wait()
}

// Config of a Pool. Growable has segments of addresses that get memory in granules,
// wherever blocks need it; a Source that is no Grower has ordinary ones all the same.
// Moving takes these granules, before more from the device, from what is free elsewhere, if
// the Source is a Mover.
type Config struct {
	LimitBytes int64 // the device's own limit of reserved memory
	Growable   bool
	Moving     bool
	Event      func(queue int) Event // called with the pool locked; nil: no queue runs behind
}

// Pool is safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	src     Source
	grower  Grower // nil: segments do not grow
	mover   Mover  // nil: what is free stays where it is
	granule int64
	cfg     Config
	limit   int64
	trim    int64 // 0: none
	made    int   // segments so far
	segs    []*segment
	classes []*class
	pending []pending
	spare   *chunk  // those that were merged, linked by next
	blocks  []Block // to be handed out
	stats   Stats
	failIn  int
	closed  bool

	rounds
}

// pending is a freed chunk that other queues may still use.
type pending struct {
	c      *chunk
	events []Event
}

// New makes a pool that has nothing reserved yet.
func New(src Source, c Config) *Pool {
	p := &Pool{src: src, cfg: c, limit: c.LimitBytes, granule: granule, failIn: -1}
	if c.Growable {
		p.grower, _ = src.(Grower)
	}
	if m, ok := src.(Mover); ok && c.Growable && c.Moving {
		p.mover, p.granule = m, fineGranule
	}
	return p
}

// ErrClosed is what Alloc returns after Close.
var ErrClosed = errors.New("memory: the pool is closed")

// FailAt makes the n-th request from now fail (0 is the next one), for tests; < 0 none.
func (p *Pool) FailAt(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failIn = n
}

// Limit is how much may be reserved.
func (p *Pool) Limit() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// SetLimit bounds reserved bytes; cached segments that are beyond it go back at once,
// blocks in use stay. A limit above the device's own is allowed.
func (p *Pool) SetLimit(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit = bytes; p.stats.Reserved > bytes {
		p.empty()
	}
}

// SetFraction is SetLimit to a part of the device's own limit; 1 sets no other.
func (p *Pool) SetFraction(f float64) { p.SetLimit(int64(f * float64(p.cfg.LimitBytes))) }

// SetTrim keeps the cache from growing beyond what is of use: where more memory of the
// device would bring reserved bytes above so many, cached segments go back first. 0 sets
// no threshold. It bounds nothing that is in use.
func (p *Pool) SetTrim(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trim = bytes
}

// Alloc returns a block, or an *OutOfMemoryError after the whole failure chain: cached
// blocks; pending frees; more memory from the device; waiting for pending frees and
// releasing cached segments; the rescue, once, and from the start.
func (p *Pool) Alloc(r Request) (*Block, error) {
	if r.Bytes < 0 {
		panic("memory: negative request")
	}
	for r.Spare != nil && p.strains(r) && r.Spare() {
	}
	b, err := p.alloc(r, true)
	if b == nil && r.Rescue != nil && err != ErrClosed && err != errInjected {
		if n := r.Rescue(); n > 0 {
			p.rescued(n)
			b, err = p.alloc(r, false)
		}
	}
	if b != nil || err == ErrClosed {
		return b, err
	}
	return nil, p.outOfMemory(r, err)
}

// strains reports whether r would raise the peak or have the device give more.
func (p *Pool) strains(r Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := rounded(r.Bytes)
	in := p.class(r.Queue, size <= smallMax)
	fits := in.index(size, 0, 0) < len(in.free) || p.mover != nil && p.stats.Cached() >= size
	return p.stats.Allocated+size > p.stats.Peak.Allocated || !fits
}

var errInjected = errors.New("injected")

// alloc returns no block where there is no room; the error then says what the device
// had against it, if anything.
func (p *Pool) alloc(r Request, first bool) (*Block, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if first {
		p.stats.Requests++
		if p.failIn >= 0 {
			if p.failIn--; p.failIn < 0 {
				return nil, errInjected
			}
		}
	}
	size := rounded(r.Bytes)
	c, err := p.place(size, r.Queue)
	if c == nil {
		c, err = p.obtain(size, p.class(r.Queue, size <= smallMax))
	}
	if c == nil {
		return nil, err
	}
	p.split(c, size)
	c.state = Active
	c.use = use{requested: r.Bytes, used: r.Bytes, category: r.Category, owner: r.Owner, queues: c.queues[:0]}
	p.record(c)
	s := &p.stats
	peak := s.Peak.Allocated
	p.account(c.seg, Usage{Requested: r.Bytes, Allocated: c.size, Active: c.size, Blocks: 1})
	s.Used += r.Bytes
	s.Categories[r.Category] += c.size
	s.Peaks[r.Category] = max(s.Peaks[r.Category], s.Categories[r.Category])
	if s.Peak.Allocated > peak {
		s.AtPeak = s.Categories
	}
	p.fill(c)
	p.guard(c)
	if len(p.blocks) == 0 {
		p.blocks = make([]Block, 64) // one by one they are the most of what a request costs
	}
	b := &p.blocks[0]
	p.blocks = p.blocks[1:]
	b.at = c
	return b, nil
}

func rounded(bytes int64) int64 {
	if bytes > math.MaxInt64-granule { // no limit has room for it
		return math.MaxInt64 / granule * granule
	}
	return max(unit, roundUp(bytes, unit))
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// obtain takes a free chunk of at least size bytes out of the lists.
func (p *Pool) obtain(size int64, in *class) (*chunk, error) {
	if c := in.find(size); c != nil {
		return c, nil
	}
	if len(p.pending) > 0 {
		p.settle(false)
		if c := in.find(size); c != nil {
			return c, nil
		}
	}
	if p.trim > 0 && p.stats.Reserved+roundUp(size, p.granule) > p.trim {
		before := p.stats.Reserved
		if p.empty(); p.stats.Reserved < before {
			p.stats.Trims++
		}
	}
	if c, _ := p.grow(size, in); c != nil {
		return c, nil
	}
	p.stats.Retries++
	p.settle(true)
	if c := in.find(size); c != nil {
		return c, nil
	}
	p.empty()
	c, err := p.grow(size, in)
	if c == nil { // what is kept for requests of the other kind is better than none
		c = p.class(in.queue, !in.small).find(size)
	}
	return c, err
}

// Free gives the block back: to its own queue at once, to the device or to blocks
// beside it when the other queues that used it are done. Freeing twice panics.
func (p *Pool) Free(b *Block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := b.at
	if c == nil {
		panic("memory: block freed twice")
	}
	b.at = nil
	if p.closed {
		return
	}
	p.stats.Used -= c.used
	p.stats.Categories[c.category] -= c.size
	d := Usage{Requested: -c.requested, Allocated: -c.size, Blocks: -1}
	queues := c.queues
	p.recordFree(c)
	p.unguard(c)
	c.use = use{queues: queues[:0]}
	if p.cfg.Event == nil || len(queues) == 0 {
		p.release(c, d)
		return
	}
	p.account(c.seg, d)
	c.state = Pending
	w := pending{c: c}
	for _, q := range queues {
		w.events = append(w.events, p.cfg.Event(q))
	}
	p.pending = append(p.pending, w)
}

// release makes c free; d is what that changes besides.
func (p *Pool) release(c *chunk, d Usage) {
	p.fill(c)
	d.Active = -c.size
	p.account(c.seg, d)
	p.join(c)
}

// settle releases the pending chunks that no queue uses any more; all, if it may wait.
func (p *Pool) settle(wait bool) {
	p.pending = slices.DeleteFunc(p.pending, func(w pending) bool {
		for _, e := range w.events {
			if wait {
				e.Wait()
			} else if !e.Done() {
				return false
			}
		}
		p.release(w.c, Usage{})
		return true
	})
}

// EmptyCache waits for pending frees and returns to the device what no block uses, in
// whole segments, or granules where segments grow.
func (p *Pool) EmptyCache() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle(true)
	p.empty()
}

// Close returns everything to the device, blocks in use included; they may still be
// freed afterwards.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle(true)
	for _, s := range p.segs {
		p.src.Unmap(s.bytes)
		s.bytes = nil
	}
	p.segs, p.classes, p.spare, p.closed = nil, nil, nil, true
	p.stats.Usage, p.stats.Categories, p.stats.Used = Usage{}, ByCategory{}, 0
}
