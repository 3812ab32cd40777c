package memory_test

import (
	"testing"

	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/memory"
)

const mib = 1 << 20

// place is where the only block of category Workspace lies.
func place(t *testing.T, p *memory.Pool) (segment int, offset, bytes int64) {
	t.Helper()
	for _, g := range p.Snapshot().Segments {
		for _, r := range g.Regions {
			if r.State == memory.Active && *r.Category == memory.Workspace {
				return g.Number, r.Offset, r.Bytes
			}
		}
	}
	t.Fatal("no such block")
	return
}

// What a request takes out of what is free follows from sizes and order alone.
func TestFit(t *testing.T) {
	tests := []struct {
		name            string
		growable        bool
		blocks          []int64 // made in this order
		free            []int   // and these freed, in this one
		ask             int64
		segment         int
		offset, granted int64
	}{
		{"the smallest that is enough", false, []int64{4096, 512, 2048, 512, 3072, 512}, []int{0, 2, 4}, 2560, 0, 7168, 2560},
		{"the first of equals, freed last", false, []int64{2048, 512, 2048, 512}, []int{2, 0}, 2048, 0, 0, 2048},
		{"the oldest segment of equals", false, []int64{mib, mib, mib, mib, mib, mib}, []int{4, 2}, mib, 1, 0, mib},
		{"a rest of 512 in a small segment is split off", false, []int64{1536, 512}, []int{0}, 1024, 0, 0, 1024},
		{"any in a large one", false, []int64{4 * mib, 2 * mib}, []int{0}, 4*mib - 512, 0, 0, 4*mib - 512},
		{"any in a growable one", true, []int64{4 * mib, 2 * mib}, []int{0}, 4*mib - 512, 0, 0, 4*mib - 512},
		{"neighbours join", false, []int64{2048, 2048, 2048, 512}, []int{0, 2, 1}, 6144, 0, 0, 6144},
		{"small requests do not take large segments", false, []int64{2 * mib}, []int{0}, mib, 1, 0, mib},
		{"nor large ones small segments", false, []int64{mib}, []int{0}, mib + 1, 1, 0, mib + 512},
		{"zero bytes", false, nil, nil, 0, 0, 0, 512},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib, Growable: tt.growable})
			var blocks []*memory.Block
			for _, n := range tt.blocks {
				b, err := p.Alloc(memory.Request{Bytes: n})
				if err != nil {
					t.Fatal(err)
				}
				blocks = append(blocks, b)
			}
			for _, i := range tt.free {
				p.Free(blocks[i])
			}
			if _, err := p.Alloc(memory.Request{Bytes: tt.ask, Category: memory.Workspace}); err != nil {
				t.Fatal(err)
			}
			segment, offset, granted := place(t, p)
			if segment != tt.segment || offset != tt.offset || granted != tt.granted {
				t.Errorf("segment %d, offset %d, %d bytes; want %d, %d, %d", segment, offset, granted, tt.segment, tt.offset, tt.granted)
			}
		})
	}
}

// Memory comes back first where least of it is needed, and first where that is equal.
func TestFitOfAddresses(t *testing.T) {
	for _, tt := range []struct{ ask, offset int64 }{{2 * mib, 0}, {5 * mib, 6 * mib}, {8 * mib, 14 * mib}} {
		p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib, Growable: true})
		var blocks []*memory.Block
		for _, n := range []int64{4, 2, 6, 2, 2} {
			b, err := p.Alloc(memory.Request{Bytes: n * mib})
			if err != nil {
				t.Fatal(err)
			}
			blocks = append(blocks, b)
		}
		p.Free(blocks[0])
		p.Free(blocks[2])
		p.Free(blocks[4])
		p.EmptyCache()
		if n := p.Stats().Reserved; n != 4*mib {
			t.Errorf("reserved %d", n)
		}
		if _, err := p.Alloc(memory.Request{Bytes: tt.ask, Category: memory.Workspace}); err != nil {
			t.Fatal(err)
		}
		if _, offset, _ := place(t, p); offset != tt.offset {
			t.Errorf("%d bytes at %d, want %d", tt.ask, offset, tt.offset)
		}
	}
}

// What is free in pieces too short for a request moves to one place; what then is still
// missing comes from the device.
func TestMoving(t *testing.T) {
	for _, tt := range []struct{ ask, reserved, moved int64 }{
		{4 * mib, 16 * mib, 0}, // fits
		{6*mib + 512, 16 * mib, 2*mib + 256<<10},
		{9 * mib, 16 * mib, 5 * mib},
		{11 * mib, 17 * mib, 6 * mib},
	} {
		p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib, Growable: true, Moving: true})
		var blocks []*memory.Block
		for _, n := range []int64{2, 4, 4, 2, 4} {
			blocks = append(blocks, alloc(t, p, n*mib))
		}
		for _, i := range []int{0, 2, 4} {
			p.Free(blocks[i])
		}
		alloc(t, p, tt.ask)
		if s := p.Stats(); s.Reserved != tt.reserved || s.Peak.Reserved != tt.reserved || s.Moved != tt.moved {
			t.Errorf("%d bytes: reserved %d, at most %d, moved %d; want %d and %d", tt.ask, s.Reserved, s.Peak.Reserved, s.Moved, tt.reserved, tt.moved)
		}
	}
}

// A block may begin between addresses without memory, to end in what is free behind them.
func TestFitBeforeFree(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib, Growable: true})
	a, b := alloc(t, p, 6*mib), alloc(t, p, 4*mib)
	alloc(t, p, 2*mib)
	p.Free(a)
	p.EmptyCache()
	p.Free(b)
	if _, err := p.Alloc(memory.Request{Bytes: 5 * mib, Category: memory.Workspace}); err != nil {
		t.Fatal(err)
	}
	if _, offset, _ := place(t, p); offset != 4*mib || p.Stats().Reserved != 8*mib {
		t.Errorf("at %d, reserved %d", offset, p.Stats().Reserved)
	}
}

// Granules count whole, and the last one within the limit is to be had.
func TestGrowableLimit(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 8*mib + 512, Growable: true})
	for _, tt := range []struct {
		bytes int64
		fits  bool
	}{{mib, true}, {4 * mib, true}, {2*mib + 512, false}, {4 * mib, false}, {2 * mib, true}, {mib, true}, {1, false}} {
		if _, err := p.Alloc(memory.Request{Bytes: tt.bytes}); (err == nil) != tt.fits {
			t.Errorf("%d bytes: %v", tt.bytes, err)
		}
	}
	if n := p.Stats().Reserved; n != 8*mib {
		t.Errorf("reserved %d", n)
	}
}

// A lower limit takes what is cached at once, and what is in use only when it is freed.
func TestSetLimit(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib})
	a, errA := p.Alloc(memory.Request{Bytes: 16 * mib})
	b, errB := p.Alloc(memory.Request{Bytes: 16 * mib})
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	p.Free(a)
	p.SetFraction(0.125)
	if n := p.Stats().Reserved; n != 16*mib {
		t.Errorf("reserved %d", n)
	}
	p.Free(b)
	if _, err := p.Alloc(memory.Request{Bytes: 10 * mib}); err != nil {
		t.Error("what is cached has been paid for: ", err)
	}
	if _, err := p.Alloc(memory.Request{Bytes: 7 * mib}); err == nil {
		t.Error("grew beyond the limit")
	}
	if _, err := p.Alloc(memory.Request{Bytes: 1}); err != nil || p.Stats().Reserved != 16*mib {
		t.Error("of what is left of the cached one: ", err, p.Stats().Reserved)
	}
	p.SetLimit(64 * mib)
	if _, err := p.Alloc(memory.Request{Bytes: 1}); err != nil {
		t.Error(err)
	}
}

// The last segment is as long as the limit leaves room for; nothing is lost at the end.
func TestLastSegment(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 26 * mib})
	for range 2 { // 16 MiB of a segment of 20
		if _, err := p.Alloc(memory.Request{Bytes: 8 * mib}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Alloc(memory.Request{Bytes: 6*mib + 1}); err == nil {
		t.Error("more than the limit")
	}
	if _, err := p.Alloc(memory.Request{Bytes: 6 * mib}); err != nil {
		t.Error(err)
	}
	if n := p.Stats().Reserved; n != 26*mib {
		t.Errorf("reserved %d", n)
	}
}

// A block that another queue used comes back after that queue's event, at once when it
// has passed, and a request that has no other way waits for it.
func TestQueues(t *testing.T) {
	clock := 0
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 2 * mib,
		Event: func(queue int) memory.Event {
			if queue != 1 {
				t.Errorf("an event of queue %d", queue)
			}
			return moment{&clock, clock}
		}})
	alloc := func() *memory.Block {
		t.Helper()
		b, err := p.Alloc(memory.Request{Bytes: mib})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b := alloc(), alloc()
	a.UsedOn(0) // its own
	a.UsedOn(1)
	a.UsedOn(1)
	p.Free(a)
	if s := p.Stats(); s.Allocated != mib || s.Active != 2*mib || s.Cached() != 0 {
		t.Errorf("freed and still read: %+v", s.Usage)
	}
	clock++
	a = alloc()
	if n := p.Stats().Retries; n != 0 {
		t.Errorf("%d retries after the event", n)
	}
	a.UsedOn(1)
	p.Free(a)
	alloc()
	if n := p.Stats().Retries; n != 1 || clock != 2 {
		t.Errorf("%d retries, clock %d: not waited", n, clock)
	}
	p.Free(b)
	if _, err := p.Alloc(memory.Request{Bytes: mib, Queue: 1}); err == nil {
		t.Error("a queue took what another has cached")
	}
}
