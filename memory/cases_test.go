package memory_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/memory"
)

// both runs f on a pool with memory and on one without.
func both(t *testing.T, c memory.Config, f func(*testing.T, *memory.Pool)) {
	for name, src := range map[string]memory.Source{"heap": heap{}, "dry": dry.Source{}} {
		t.Run(name, func(t *testing.T) {
			p := memory.New(src, c)
			defer p.Close()
			f(t, p)
		})
	}
}

func alloc(t *testing.T, p *memory.Pool, bytes int64) *memory.Block {
	t.Helper()
	b, err := p.Alloc(memory.Request{Bytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func full(t *testing.T, err error) *memory.OutOfMemoryError {
	t.Helper()
	e, ok := errors.AsType[*memory.OutOfMemoryError](err)
	if !ok || !errors.Is(err, memory.ErrOutOfMemory) {
		t.Fatalf("%v; want an *OutOfMemoryError that is ErrOutOfMemory", err)
	}
	return e
}

func TestSizeClasses(t *testing.T) {
	both(t, memory.Config{LimitBytes: 64 * mib}, func(t *testing.T, p *memory.Pool) {
		var all []*memory.Block
		for _, n := range []int64{1, 1048576, 1048577, 10485760} {
			all = append(all, alloc(t, p, n))
		}
		want := memory.Usage{Requested: 12582914, Allocated: 12583936, Active: 12583936, Reserved: 23068672,
			InactiveSplit: 10484736, Segments: 2, Blocks: 4}
		if got := p.Stats().Usage; got != want {
			t.Fatal(cmp.Diff(want, got))
		}
		for _, b := range all {
			p.Free(b)
		}
		if got, want := p.Stats().Usage, (memory.Usage{Reserved: 23068672, Segments: 2}); got != want {
			t.Fatal(cmp.Diff(want, got))
		}
		p.EmptyCache()
		if s := p.Stats(); s.Usage != (memory.Usage{}) || s.LargestFree != 0 {
			t.Fatalf("%+v", s)
		}
	})
}

// halfFree has 24 MiB in use and as much free between, in pieces of 8 MiB, and asks for
// 24 MiB.
func halfFree(t *testing.T, p *memory.Pool) error {
	var blocks []*memory.Block
	for range 6 {
		blocks = append(blocks, alloc(t, p, 8*mib))
	}
	for _, i := range []int{1, 3, 5} {
		p.Free(blocks[i])
	}
	_, err := p.Alloc(memory.Request{Bytes: 24 * mib, Category: memory.Activations})
	return err
}

func TestFreeButNotUsable(t *testing.T) {
	both(t, memory.Config{LimitBytes: 64 * mib}, func(t *testing.T, p *memory.Pool) {
		want := &memory.OutOfMemoryError{
			Requested: 25165824, Category: memory.Activations, Cause: memory.Fragmentation,
			Limit: 67108864, DeviceLimit: 67108864, Reserved: 62914560, Allocated: 25165824,
			Cached: 37748736, LargestFree: 12582912, DeviceFree: 4194304,
			Categories: memory.ByCategory{memory.Other: 25165824},
			Holders:    []memory.Holder{{Bytes: 25165824}}, Retries: 1, Count: 1,
		}
		if d := cmp.Diff(want, full(t, halfFree(t, p))); d != "" {
			t.Fatal(d)
		}
	})
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib, Growable: true})
	if err := halfFree(t, p); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Reserved != 67108864 || s.Allocated != 50331648 {
		t.Fatalf("growable: %+v", s.Usage)
	}
}

func TestSmallViewOfBigTensor(t *testing.T) {
	both(t, memory.Config{LimitBytes: 64 * mib}, func(t *testing.T, p *memory.Pool) {
		b := alloc(t, p, 4*1_000_000)
		if s := p.Stats(); s.Allocated != 4_000_256 || s.Used != 4_000_000 {
			t.Fatalf("allocated %d, used %d", s.Allocated, s.Used)
		}
		b.SetUsed(4*1000, func() string { return "view made at net.go:12" })
		if s := p.Stats(); s.Allocated != 4_000_256 || s.Requested != 4_000_000 || s.Used != 4000 {
			t.Fatalf("allocated %d, requested %d, used %d", s.Allocated, s.Requested, s.Used)
		}
		if r := p.Snapshot().Segments[0].Regions[0]; r.Used != 4000 || r.PinnedBy != "view made at net.go:12" {
			t.Fatalf("%+v", r)
		}
		if got, want := p.Live(), "     3.8 MiB  other; 3.9 KiB used, pinned by view made at net.go:12\n"; got != want {
			t.Fatalf("%q; want %q", got, want)
		}
		compact := alloc(t, p, 4*1000)
		p.Free(b)
		if s := p.Stats(); s.Allocated != 4096 || s.Used != 4000 {
			t.Fatalf("compact: allocated %d, used %d", s.Allocated, s.Used)
		}
		compact.SetUsed(-1, nil)
		if n := p.Stats().Used; n != 0 {
			t.Fatalf("used %d", n)
		}
		compact.SetUsed(1<<40, nil) // views that overlap
		if n := p.Stats().Used; n != 4000 {
			t.Fatalf("used %d", n)
		}
	})
}

// 28 such tensors are what a pool of host memory must not round up to powers of two.
func TestBigBlocksAreNotRoundedToPowersOfTwo(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 1 << 40})
	for range 28 {
		alloc(t, p, 2*18944*3584)
	}
	if s := p.Stats(); s.Allocated != 28*135_790_592 || s.Requested != s.Allocated || s.Reserved != 28*136_314_880 {
		t.Fatalf("%+v", s.Usage)
	}
}
