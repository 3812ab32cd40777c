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
type Request struct {
	Bytes    int64
	Queue    int
	Category Category
	Owner    Owner
	Rescue   func() int64
}

// Block is allocated memory; its owner frees it once. A Block is never handed out
// again, so that a second Free is always noticed.
type Block struct {
	pool            *Pool
	at              *chunk // nil once freed
	requested, used int64
	category        Category
	owner           Owner
	pinnedBy        func() string
	queues          []int // beside its own, that may still use it
}

// Bytes is the block's memory, as long as was requested; nil over a dry source, once
// the block is freed and once its pool is closed.
func (b *Block) Bytes() []byte {
	if b.at == nil {
		return nil
	}
	return b.at.seg.part(b.at.off, b.requested)
}

// UsedOn says that queue reads or writes the block: freed, it waits for that.
func (b *Block) UsedOn(queue int) {
	defer b.pool.lock()()
	if b.at != nil && queue != b.at.seg.class.queue && !slices.Contains(b.queues, queue) {
		b.queues = append(b.queues, queue)
	}
}

// SetCategory moves the block's bytes to another line of the statistics.
func (b *Block) SetCategory(c Category) {
	defer b.pool.lock()()
	if b.at != nil {
		b.pool.stats.Categories[b.category] -= b.at.size
		b.pool.stats.Categories[c] += b.at.size
		b.category = c
	}
}

// SetOwner replaces the owner; nil is allowed.
func (b *Block) SetOwner(o Owner) {
	defer b.pool.lock()()
	if b.at != nil {
		b.owner = o
	}
}

// SetUsed says how many bytes of the block can still be reached, as when only a view of
// it is left, and by what ("view made at net.go:12"): asked only when shown, without a
// lock held; nil if it is its owner. Until then all requested bytes are in use.
func (b *Block) SetUsed(bytes int64, by func() string) {
	defer b.pool.lock()()
	if b.at != nil {
		b.pool.stats.Used += bytes - b.used
		b.used, b.pinnedBy = bytes, by
	}
}
