package memory_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/memory"
)

// machine makes the same calls on two pools: over the host's memory and over none.
type machine struct {
	pools  [2]*memory.Pool
	clocks [2]int
	live   []*twin
	limit  int64
	peaks  map[string]int64
	tag    byte
	steps  [2][]request
}

// request is one of a step, and how many later ones see its block.
type request struct {
	bytes int64
	life  int
}

// twin is a block of each pool, and what is expected of it.
type twin struct {
	blocks          [2]*memory.Block
	requested, used int64
	category        memory.Category
	tag             byte
}

// moment is an event that has passed when its clock has moved on.
type moment struct {
	clock *int
	at    int
}

func (m moment) Done() bool { return *m.clock > m.at }
func (m moment) Wait()      { *m.clock = max(*m.clock, m.at+1) }

func newMachine(t *rapid.T) *machine {
	const limit = 96 << 20
	m := &machine{limit: limit, peaks: map[string]int64{}}
	growable, moving := rapid.Bool().Draw(t, "growable"), rapid.Bool().Draw(t, "moving")
	for i, s := range []memory.Source{host.Source{}, dry.Source{}} {
		m.pools[i] = memory.New(s, memory.Config{LimitBytes: limit, Growable: growable, Moving: moving,
			Event: func(int) memory.Event { return moment{&m.clocks[i], m.clocks[i]} }})
	}
	for i := range m.steps {
		m.steps[i] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) request {
			return request{rapid.OneOf(rapid.Int64Range(0, 64<<10), rapid.Int64Range(0, 16<<20)).Draw(t, "bytes"), rapid.IntRange(0, 12).Draw(t, "life")}
		}), 1, 12).Draw(t, "step")
	}
	return m
}

// Step is a round that may come again. What lives longer than it is left to Free.
func (m *machine) Step(t *rapid.T) {
	for _, p := range m.pools {
		p.Round()
	}
	ends := map[int][]*twin{}
	for i, r := range m.steps[rapid.IntRange(0, len(m.steps)-1).Draw(t, "which")] {
		if b := m.alloc(t, memory.Request{Bytes: r.bytes}); b != nil {
			ends[i+r.life] = append(ends[i+r.life], b)
		}
		m.Check(t)
		for _, b := range ends[i] {
			m.drop(t, slices.Index(m.live, b))
		}
	}
}

func (m *machine) Alloc(t *rapid.T) {
	r := memory.Request{
		Bytes: rapid.OneOf(rapid.Int64Range(0, 4<<10), rapid.Int64Range(0, 2<<20), rapid.Int64Range(1<<20, 12<<20),
			rapid.Int64Range(8<<20, 40<<20)).Draw(t, "bytes"),
		Queue:    rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "queue"),
		Category: memory.Category(rapid.IntRange(0, int(memory.Workspace)).Draw(t, "category")),
	}
	m.alloc(t, r)
}

// alloc returns nil where there is no room.
func (m *machine) alloc(t *rapid.T, r memory.Request) *twin {
	m.tag++
	b := &twin{requested: r.Bytes, used: r.Bytes, category: r.Category, tag: m.tag}
	var errs [2]error
	for i, p := range m.pools {
		most := max(m.limit, p.Stats().Reserved) // a limit set below what is in use
		b.blocks[i], errs[i] = p.Alloc(r)
		if n := p.Stats().Reserved; n > most {
			t.Fatalf("reserved %d, more than %d", n, most)
		}
	}
	if (errs[0] == nil) != (errs[1] == nil) {
		t.Fatalf("host: %v; dry: %v", errs[0], errs[1])
	}
	if errs[0] != nil {
		var a, b *memory.OutOfMemoryError
		if !errors.As(errs[0], &a) || !errors.As(errs[1], &b) {
			t.Fatal(errs)
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Fatal(d)
		}
		return nil
	}
	if mem := b.blocks[0].Bytes(); int64(len(mem)) != r.Bytes || cap(mem) != len(mem) {
		t.Fatalf("%d bytes, capacity %d, for %d", len(mem), cap(mem), r.Bytes)
	} else if len(mem) > 0 {
		mem[0], mem[len(mem)-1] = b.tag, b.tag
	}
	m.live = append(m.live, b)
	return b
}

func (m *machine) one(t *rapid.T) (*twin, int) {
	if len(m.live) == 0 {
		t.Skip("no block")
	}
	i := rapid.IntRange(0, len(m.live)-1).Draw(t, "block")
	return m.live[i], i
}

func (m *machine) Free(t *rapid.T) {
	_, i := m.one(t)
	m.drop(t, i)
}

func (m *machine) drop(t *rapid.T, i int) {
	b := m.live[i]
	m.live[i] = m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	m.free(t, b)
}

func (m *machine) free(t *rapid.T, b *twin) {
	if mem := b.blocks[0].Bytes(); len(mem) > 0 && (mem[0] != b.tag || mem[len(mem)-1] != b.tag) {
		t.Fatalf("a block of %d bytes was written by another's owner", len(mem))
	}
	for i, p := range m.pools {
		p.Free(b.blocks[i])
	}
}

func (m *machine) UsedOn(t *rapid.T) {
	b, _ := m.one(t)
	q := rapid.IntRange(0, 2).Draw(t, "queue")
	for _, x := range b.blocks {
		x.UsedOn(q)
	}
}

func (m *machine) SetCategory(t *rapid.T) {
	b, _ := m.one(t)
	b.category = memory.Category(rapid.IntRange(0, int(memory.Workspace)).Draw(t, "category"))
	for _, x := range b.blocks {
		x.SetCategory(b.category)
	}
}

func (m *machine) SetUsed(t *rapid.T) {
	b, _ := m.one(t)
	b.used = rapid.Int64Range(0, b.requested).Draw(t, "used")
	for _, x := range b.blocks {
		x.SetUsed(b.used, nil)
	}
}

func (m *machine) SetLimit(t *rapid.T) {
	m.limit = rapid.Int64Range(0, 96<<20).Draw(t, "limit")
	for _, p := range m.pools {
		p.SetLimit(m.limit)
	}
}

func (m *machine) Time(*rapid.T) {
	m.clocks[0]++
	m.clocks[1]++
}

func (m *machine) EmptyCache(*rapid.T) {
	for _, p := range m.pools {
		p.EmptyCache()
	}
}

func (m *machine) FailAt(t *rapid.T) {
	n := rapid.IntRange(-1, 3).Draw(t, "n")
	for _, p := range m.pools {
		p.FailAt(n)
	}
}

func (m *machine) ResetPeak(t *rapid.T) {
	for _, p := range m.pools {
		p.ResetPeak()
		if s := p.Stats(); s.Peak != s.Usage || s.AtPeak != s.Categories || s.Peaks != s.Categories {
			t.Fatalf("%+v", s)
		}
	}
	clear(m.peaks)
}

// Check compares the pools with each other, what they say with the blocks that there
// are, and the statistics with a walk over all segments.
func (m *machine) Check(t *rapid.T) {
	s := m.pools[0].Stats()
	if d := m.pools[1].Stats(); s != d {
		t.Fatal("host and dry differ:\n", cmp.Diff(s, d))
	}
	shot := m.pools[0].Snapshot()
	if d := cmp.Diff(shot, m.pools[1].Snapshot()); d != "" {
		t.Fatal("host and dry differ:\n", d)
	}
	walked := walk(t, shot)
	walked.Peak, walked.Total, walked.Freed, walked.AtPeak, walked.Peaks = s.Peak, s.Total, s.Freed, s.AtPeak, s.Peaks
	walked.Requests, walked.Retries, walked.OutOfMemory, walked.Moved = s.Requests, s.Retries, s.OutOfMemory, s.Moved
	if walked != s {
		t.Fatal("statistics and segments differ:\n", cmp.Diff(walked, s))
	}
	want := memory.Stats{}
	for _, b := range m.live {
		want.Requested += b.requested
		want.Used += b.used
		want.Blocks++
	}
	if s.Requested != want.Requested || s.Used != want.Used || s.Blocks != want.Blocks {
		t.Fatal("statistics and calls differ:\n", cmp.Diff(want, s))
	}
	eachUsage(s, func(name string, now, peak, total, freed int64) {
		m.peaks[name] = max(m.peaks[name], now)
		if peak != m.peaks[name] && name != "inactive split" { // which has peaks within a call
			t.Fatalf("%s: peak %d, seen %d", name, peak, m.peaks[name])
		}
		if now < 0 || peak < now || total < peak || total-freed != now {
			t.Fatalf("%s: now %d, peak %d, total %d, freed %d", name, now, peak, total, freed)
		}
	})
	if s.Allocated > s.Active || s.Active > s.Reserved {
		t.Fatalf("%+v", s)
	}
}

// walk adds up what a snapshot's regions say.
func walk(t *rapid.T, shot memory.Snapshot) (s memory.Stats) {
	s.Segments = int64(len(shot.Segments))
	for _, g := range shot.Segments {
		var at, size, active int64
		last := memory.Active
		for _, r := range g.Regions {
			if r.Offset != at || r.Bytes <= 0 || r.Bytes%512 != 0 {
				t.Fatalf("segment %d: %+v at %d", g.Number, r, at)
			}
			at += r.Bytes
			switch r.State {
			case memory.Active:
				s.Requested += r.Requested
				s.Used += r.Used
				s.Allocated += r.Bytes
				s.Categories[*r.Category] += r.Bytes
				s.Blocks++
				active += r.Bytes
			case memory.Pending:
				active += r.Bytes
			case memory.Free:
				s.LargestFree = max(s.LargestFree, r.Bytes)
			}
			if r.State == last && last != memory.Active && last != memory.Pending {
				t.Fatalf("segment %d: two %s regions at %d", g.Number, last, r.Offset)
			}
			if last = r.State; last != memory.Empty {
				size += r.Bytes
			}
		}
		if g.Bytes != size {
			t.Fatalf("segment %d has %d bytes, its regions %d", g.Number, g.Bytes, size)
		}
		s.Reserved += size
		s.Active += active
		if active > 0 {
			s.InactiveSplit += size - active
		}
	}
	return s
}

// TestRapid makes random calls, and in the end frees everything.
func TestRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer func() {
			for _, p := range m.pools {
				p.Close()
			}
		}()
		for range 4 { // long enough to fill the limit
			t.Repeat(rapid.StateMachineActions(m))
		}
		for _, b := range m.live {
			m.free(t, b)
		}
		m.live = nil
		m.EmptyCache(t)
		m.Check(t)
		if s := m.pools[0].Stats(); s.Usage != (memory.Usage{}) || s.Freed != s.Total || s.LargestFree != 0 {
			t.Fatalf("all is freed: %+v", s)
		}
	})
}

func eachUsage(s memory.Stats, f func(name string, now, peak, total, freed int64)) {
	f("requested", s.Requested, s.Peak.Requested, s.Total.Requested, s.Freed.Requested)
	f("allocated", s.Allocated, s.Peak.Allocated, s.Total.Allocated, s.Freed.Allocated)
	f("active", s.Active, s.Peak.Active, s.Total.Active, s.Freed.Active)
	f("reserved", s.Reserved, s.Peak.Reserved, s.Total.Reserved, s.Freed.Reserved)
	f("inactive split", s.InactiveSplit, s.Peak.InactiveSplit, s.Total.InactiveSplit, s.Freed.InactiveSplit)
	f("segments", s.Segments, s.Peak.Segments, s.Total.Segments, s.Freed.Segments)
	f("blocks", s.Blocks, s.Peak.Blocks, s.Total.Blocks, s.Freed.Blocks)
}
