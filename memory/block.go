package memory

import "slices"

// Owner tells who holds a block: the path of a module ("layer1.0.conv1"), an operation
// and a place in the program ("net.go:31"). It is asked only when something is shown,
// without a lock held, and dropped when the block is freed.
type Owner interface {
	Path() string
	Op() string
	At() string
}

// Request asks for Bytes on Queue; 0 bytes take the smallest block, too. Owner may be
// nil. Rescue is the last resort before the error: it may free blocks of this pool and
// returns how many bytes that was; it is called once at most and without a lock held.
// Spare frees something that its owner would rather keep, if there is anything: it is
// called, without a lock held, before the request would raise the peak or have the device
// give more.
type Request struct {
	Bytes    int64
	Queue    int
	Category Category
	Owner    Owner
	Rescue   func() int64
	Spare    func() bool
}

// Block is allocated memory; its owner frees it once. A Block is never handed out
// again, so that a second Free is always noticed. What is set on it after that, or once
// its pool is closed, has no effect.
type Block struct{ at *chunk } // nil once freed

// use is what a chunk is used for.
type use struct {
	requested, used int64
	category        Category
	owner           Owner
	pinnedBy        func() string
	queues          []int  // beside its own, that may still use it
	round, nth      int    // of the round that it was asked for in, and of those in it; 0: of none
	mem             []byte // apart from the segment, which keeps the block's place; in debug builds
}

// Bytes is the block's memory, as long as was requested; nil over a dry source, once
// the block is freed and once its pool is closed.
func (b *Block) Bytes() []byte {
	if b.at == nil {
		return nil
	}
	if b.at.mem != nil {
		return b.at.mem
	}
	return b.at.seg.part(b.at.off, b.at.requested)
}

// UsedOn says that queue reads or writes the block: freed, it waits for that.
func (b *Block) UsedOn(queue int) {
	b.update(func(_ *Pool, c *chunk) {
		if queue != c.seg.class.queue && !slices.Contains(c.queues, queue) {
			c.queues = append(c.queues, queue)
		}
	})
}

// SetCategory moves the block's bytes to another line of the statistics.
func (b *Block) SetCategory(category Category) {
	b.update(func(p *Pool, c *chunk) {
		p.stats.Categories[c.category] -= c.size
		p.stats.Categories[category] += c.size
		p.stats.Peaks[category] = max(p.stats.Peaks[category], p.stats.Categories[category])
		c.category = category
	})
}

// SetOwner replaces the owner; nil is allowed.
func (b *Block) SetOwner(o Owner) {
	b.update(func(_ *Pool, c *chunk) { c.owner = o })
}

// SetUsed says how many of the requested bytes can still be reached, as when only a view
// of them is left, and by what ("view made at net.go:12"): asked only when shown,
// without a lock held; nil if it is the owner. Until then all are in use.
func (b *Block) SetUsed(bytes int64, by func() string) {
	b.update(func(p *Pool, c *chunk) {
		bytes = min(max(bytes, 0), c.requested) // views may overlap
		p.stats.Used += bytes - c.used
		c.used, c.pinnedBy = bytes, by
	})
}

func (b *Block) update(f func(*Pool, *chunk)) {
	if b.at == nil {
		return
	}
	p := b.at.seg.class.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		f(p, b.at)
	}
}
