package memory_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/memory"
)

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return
}

func TestMisuse(t *testing.T) {
	p := memory.New(heap{}, memory.Config{LimitBytes: 64 * mib})
	b := alloc(t, p, 1000)
	p.Free(b)
	same := alloc(t, p, 1000) // in the same place
	if !panics(func() { p.Free(b) }) {
		t.Error("freed twice")
	}
	if !panics(func() { p.Alloc(memory.Request{Bytes: -1}) }) {
		t.Error("a negative request")
	}
	before := p.Stats()
	b.SetCategory(memory.Casts)
	b.SetUsed(1, nil)
	b.SetOwner(module{path: "a"})
	b.UsedOn(1)
	if b.Bytes() != nil || p.Stats() != before || len(same.Bytes()) != 1000 {
		t.Error("a freed block still acts")
	}
}

func TestClose(t *testing.T) {
	p := memory.New(heap{}, memory.Config{LimitBytes: 64 * mib})
	b := alloc(t, p, 1000)
	p.Close()
	p.Close()
	b.SetUsed(1, nil)
	b.SetCategory(memory.Casts)
	if b.Bytes() != nil {
		t.Error("the memory has gone back")
	}
	p.Free(b)
	p.EmptyCache()
	if _, err := p.Alloc(memory.Request{Bytes: 1}); err != memory.ErrClosed {
		t.Errorf("%v; want ErrClosed", err)
	}
	if s := p.Stats(); s.Usage != (memory.Usage{}) || s.Used != 0 || s.Categories != (memory.ByCategory{}) || s.Freed != s.Total {
		t.Errorf("%+v", s)
	}
}

func TestLimit(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib})
	p.Free(alloc(t, p, 40*mib))
	alloc(t, p, 1)
	p.SetFraction(0.25)
	if n := p.Limit(); n != 16*mib {
		t.Errorf("limit %d", n)
	}
	if n := p.Stats().Reserved; n != 2*mib {
		t.Errorf("reserved %d beyond the limit, though cached", n)
	}
}

func TestPeak(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib})
	a := alloc(t, p, 4*mib)
	b := alloc(t, p, mib)
	a.SetCategory(memory.Activations)
	b.SetCategory(memory.Workspace)
	c := alloc(t, p, 512)
	p.Free(b)
	p.Free(a)
	p.Free(alloc(t, p, mib)) // no peak
	s := p.Stats()
	if want := (memory.ByCategory{memory.Activations: 4 * mib, memory.Workspace: mib, memory.Other: 512}); s.AtPeak != want {
		t.Errorf("at peak %v; want %v", s.AtPeak, want)
	}
	if s.Allocated != 512 || s.Peak.Allocated != 5*mib+512 || s.Total.Allocated != 6*mib+512 || s.Freed.Allocated != 6*mib || s.Freed.Blocks != 3 {
		t.Errorf("%+v", s)
	}
	p.ResetPeak()
	if s := p.Stats(); s.Peak != s.Usage || s.AtPeak != (memory.ByCategory{memory.Other: 512}) {
		t.Errorf("%+v", s)
	}
	p.Free(c)
}

// Addresses get memory where that takes least, and free memory on both sides is used.
// What can be spared goes before a request raises the peak or the device gives more, and
// no sooner.
func TestSpare(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib})
	a, b, c := alloc(t, p, 8*mib), alloc(t, p, 8*mib), alloc(t, p, 8*mib)
	p.Free(a)
	p.Free(c) // 8 MiB are free on either side of b
	spare := []*memory.Block{alloc(t, p, 2*mib), alloc(t, p, 2*mib)}
	get := func(bytes int64) {
		t.Helper()
		if _, err := p.Alloc(memory.Request{Bytes: bytes, Spare: func() bool {
			if len(spare) == 0 {
				return false
			}
			p.Free(spare[0])
			spare = spare[1:]
			return true
		}}); err != nil {
			t.Fatal(err)
		}
	}
	before := p.Stats()
	for i, step := range []struct{ bytes, left int64 }{{8 * mib, 2}, {6 * mib, 1}, {2 * mib, 0}} {
		get(step.bytes)
		if s := p.Stats(); int64(len(spare)) != step.left || s.Peak.Allocated != before.Peak.Allocated || s.Reserved != before.Reserved {
			t.Errorf("step %d: %d kept, peak %d of %d, reserved %d of %d", i, len(spare), s.Peak.Allocated, before.Peak.Allocated, s.Reserved, before.Reserved)
		}
	}
	p.Free(b)
	spare = []*memory.Block{alloc(t, p, 2*mib)}
	if get(16 * mib); len(spare) != 0 || p.Stats().Peak.Allocated == before.Peak.Allocated {
		t.Error("the peak rose with something to spare, or did not")
	}
}

func TestGrowable(t *testing.T) {
	pool := func() *memory.Pool {
		return memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib, Growable: true})
	}
	t.Run("between", func(t *testing.T) {
		p := pool()
		a, b, c := alloc(t, p, 2*mib), alloc(t, p, 2*mib), alloc(t, p, 2*mib)
		p.Free(a)
		p.Free(c)
		p.EmptyCache()
		p.Free(b) // no memory, memory, no memory
		alloc(t, p, 6*mib)
		if s := p.Stats(); s.Reserved != 6*mib || s.Segments != 1 || s.Retries != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("least", func(t *testing.T) {
		p := pool()
		a, _, c := alloc(t, p, 4*mib), alloc(t, p, 2*mib), alloc(t, p, 2*mib)
		p.Free(a)
		p.EmptyCache()
		p.Free(c)
		alloc(t, p, 4*mib)
		if s := p.Stats(); s.Reserved != 6*mib {
			t.Errorf("reserved %d", s.Reserved)
		}
	})
	t.Run("a limit that is no granule's multiple", func(t *testing.T) {
		p := memory.New(dry.Source{}, memory.Config{LimitBytes: 5 * mib, Growable: true})
		alloc(t, p, 3*mib)
		_, err := p.Alloc(memory.Request{Bytes: 2 * mib})
		if e := full(t, err); e.Cause != memory.Capacity {
			t.Errorf("%+v", e)
		}
	})
}

func TestSnapshotJSON(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib,
		Event: func(int) memory.Event { return moment{new(int), 1} }})
	b, err := p.Alloc(memory.Request{Bytes: 4000, Category: memory.Flowing, Owner: module{path: "layer1"}})
	if err != nil {
		t.Fatal(err)
	}
	b.SetUsed(40, func() string { return "view made at net.go:12" })
	b.SetOwner(module{"layer1.0", "relu", "net.go:9"})
	waits := alloc(t, p, 512)
	waits.UsedOn(1)
	p.Free(waits)
	want := p.Snapshot()
	flowing := memory.Flowing
	if d := cmp.Diff([]memory.Region{
		{Bytes: 4096, State: memory.Active, Requested: 4000, Used: 40, Category: &flowing,
			Path: "layer1.0", Op: "relu", At: "net.go:9", PinnedBy: "view made at net.go:12"},
		{Offset: 4096, Bytes: 512, State: memory.Pending},
		{Offset: 4608, Bytes: 2*mib - 4608, State: memory.Free},
	}, want.Segments[0].Regions); d != "" {
		t.Error(d)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got memory.Snapshot
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s\n%s", d, text)
	}
	for _, bad := range []string{`{"segments":[{"regions":[{"state":"lost"}]}]}`, `{"stats":{"categories":{"cats":1}}}`} {
		if json.Unmarshal([]byte(bad), &got) == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 24641536: "23.5 MiB", 1<<20 - 1: "1.0 MiB", 1<<20 - 1<<10: "1023.0 KiB",
		5 << 30: "5.0 GiB", -1536: "-1.5 KiB", 1<<63 - 1: "8.0 EiB", -1 << 63: "-8.0 EiB",
	} {
		if got := memory.FormatBytes(n); got != want {
			t.Errorf("%d: %s; want %s", n, got, want)
		}
	}
}
