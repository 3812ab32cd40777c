package cuda

import (
	"sync"

	"github.com/snug-ml/snug/internal/driver"
)

// table is struct Table of table.cuh: up to most entries of so many words each.
type table struct {
	most, entry, blocks int
	words               []uint64
	room                [512]uint64 // 4 KB is what a kernel's parameters have
}

var tables = sync.Pool{New: func() any { return new(table) }}

func newTable(most, entry int) *table {
	t := tables.Get().(*table)
	t.most, t.entry = most, entry
	t.clear()
	return t
}

func (t *table) give() { tables.Put(t) }

func (t *table) clear() { t.words, t.blocks = append(t.room[:0], 0), 0 }

func (t *table) len() int   { return int(t.words[0]) }
func (t *table) full() bool { return t.len() == t.most }

// add appends an entry that so many blocks work on: words before and after the one that
// tells the first of them, and whether operands can be read as vectors.
func (t *table) add(blocks int, aligned bool, before []uint64, after ...uint64) {
	place := uint64(t.blocks)
	if aligned {
		place |= 1 << 32
	}
	t.words = append(append(append(t.words, before...), place), after...)
	t.words[0]++
	t.blocks += blocks
}

// all are the words of the whole struct.
func (t *table) all() []uint64 { return t.room[:1+t.most*t.entry] }

// addresses are those of an array each, 0 without one.
func addresses(arrays ...*driver.Array) []uint64 {
	w := make([]uint64, len(arrays))
	for i, a := range arrays {
		if a != nil {
			w[i] = address(a.Data)
		}
	}
	return w
}

// aligned reports whether contiguous arrays, those that are there, can be read as vectors.
func aligned(arrays []*driver.Array) bool {
	for _, at := range addresses(arrays...) {
		if at%16 != 0 {
			return false
		}
	}
	return true
}
