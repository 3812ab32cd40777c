package memory_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/memory"
)

type owner string

func (o owner) Path() string { return string(o) }
func (o owner) Op() string   { return "op" }
func (o owner) At() string   { return "net.go:1" }

// Several goroutines allocate, write, free and look, near the limit; each block keeps
// what its goroutine wrote, and in the end nothing is left.
func TestConcurrent(t *testing.T) {
	for _, growable := range []bool{false, true} {
		p := memory.New(host.Source{}, memory.Config{LimitBytes: 48 << 20, Growable: growable})
		var wg sync.WaitGroup
		for id := range byte(4) {
			wg.Go(func() { worker(t, p, id+1) })
		}
		wg.Wait()
		p.EmptyCache()
		if s := p.Stats(); s.Usage != (memory.Usage{}) || s.Used != 0 || s.Categories != (memory.ByCategory{}) {
			t.Errorf("growable %v: %+v", growable, s)
		}
		p.Close()
	}
}

func worker(t *testing.T, p *memory.Pool, id byte) {
	r := rand.New(rand.NewPCG(uint64(id), 0))
	var mine []*memory.Block
	free := func(i int) {
		b := mine[i]
		if m := b.Bytes(); m[0] != id || m[len(m)-1] != id {
			t.Errorf("goroutine %d finds what %d wrote", id, m[0])
		}
		p.Free(b)
		mine = append(mine[:i], mine[i+1:]...)
	}
	for range 1500 {
		b, err := p.Alloc(memory.Request{Bytes: 1 + r.Int64N(1<<r.IntN(24)), Owner: owner("a"), Rescue: func() (n int64) {
			for len(mine) > 0 { // a rescue frees blocks of the same pool
				n += int64(len(mine[0].Bytes()))
				free(0)
			}
			return n
		}})
		switch {
		case err == nil:
			m := b.Bytes()
			m[0], m[len(m)-1] = id, id
			mine = append(mine, b)
		case !errors.Is(err, memory.ErrOutOfMemory):
			t.Error(err)
		}
		if len(mine) > 12 || len(mine) > 0 && r.IntN(3) == 0 {
			free(r.IntN(len(mine)))
		}
		if len(mine) > 0 {
			b := mine[r.IntN(len(mine))]
			b.SetCategory(memory.Category(r.IntN(10)))
			b.SetOwner(owner("b"))
			b.SetUsed(0, nil)
		}
		switch r.IntN(100) {
		case 0:
			p.EmptyCache()
		case 1:
			if s := p.Snapshot().Stats; s.Allocated > s.Reserved {
				t.Errorf("%+v", s)
			}
		case 2:
			_ = p.Summary()
		}
	}
	for len(mine) > 0 {
		free(0)
	}
}

// A rescue is called without the lock, and a panic in it leaves the pool usable.
func TestRescuePanics(t *testing.T) {
	p := memory.New(host.Source{}, memory.Config{LimitBytes: 2 << 20})
	defer p.Close()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		p.Alloc(memory.Request{Bytes: 4 << 20, Rescue: func() int64 { p.Stats(); panic("no") }})
	}()
	b, err := p.Alloc(memory.Request{Bytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	p.Free(b)
}
