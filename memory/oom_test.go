package memory_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/memory"
)

// broke is a source that has only so much.
type broke struct {
	heap
	left *int64
}

var errBroke = errors.New("the device has no more")

func (b broke) take(bytes int64) error {
	if bytes > *b.left {
		return errBroke
	}
	*b.left -= bytes
	return nil
}

func (b broke) Map(bytes int64) ([]byte, error) {
	if err := b.take(bytes); err != nil {
		return nil, err
	}
	return b.heap.Map(bytes)
}

func (b broke) Reserve(bytes int64) ([]byte, error) { return b.heap.Map(bytes) }
func (b broke) Commit(part []byte) error            { return b.take(int64(len(part))) }
func (b broke) Decommit(part []byte)                { *b.left += int64(len(part)) }

// A device refuses the second of the parts that a request lacks.
func TestRefusedHalfway(t *testing.T) {
	left := int64(6 * mib)
	p := memory.New(broke{left: &left}, memory.Config{LimitBytes: 64 * mib, Growable: true})
	a, b, c := alloc(t, p, 2*mib), alloc(t, p, 2*mib), alloc(t, p, 2*mib)
	p.Free(a)
	p.Free(c)
	p.EmptyCache()
	p.Free(b) // no memory, memory, no memory
	left = 3 * mib
	_, err := p.Alloc(memory.Request{Bytes: 8 * mib})
	if e := full(t, err); e.Cause != memory.Refused || e.Refusal != errBroke.Error() {
		t.Errorf("%+v", e)
	}
	if s := p.Stats(); s.Active != 0 || s.Reserved+left != 5*mib {
		t.Errorf("%+v, %d left", s.Usage, left)
	}
	alloc(t, p, 4*mib)
	if s := p.Stats(); s.Reserved != 4*mib || s.Segments != 1 || left != mib {
		t.Errorf("%+v, %d left", s.Usage, left)
	}
}

func TestCauses(t *testing.T) {
	const none = math.MaxInt64
	tests := []struct {
		name     string
		cause    memory.Cause
		growable bool
		device   int64 // what the source has
		prepare  func(*testing.T, *memory.Pool)
		ask      int64
		advice   string
	}{
		{"more than the limit", memory.Capacity, false, none, nil, 64*mib + 1, "smaller batch"},
		{"more than there is", memory.Capacity, true, none, func(t *testing.T, p *memory.Pool) { alloc(t, p, 1) }, math.MaxInt64, "smaller batch"},
		{"with what is in use", memory.Capacity, false, none, func(t *testing.T, p *memory.Pool) { alloc(t, p, 40*mib) }, 25 * mib, "checkpointing"},
		{"a lower limit", memory.Limited, false, none, func(_ *testing.T, p *memory.Pool) { p.SetFraction(0.5) }, 64 * mib, "raise the limit"},
		{"more than the device, too", memory.Capacity, false, none, func(_ *testing.T, p *memory.Pool) { p.SetLimit(mib) }, 65 * mib, "smaller batch"},
		{"in pieces", memory.Fragmentation, false, none, func(t *testing.T, p *memory.Pool) { halfFree(t, p) }, 24 * mib, "growable segments"},
		{"in pieces that cannot grow", memory.Fragmentation, true, none, func(t *testing.T, p *memory.Pool) {
			for i := range 21 { // every other granule is in use only in part
				b := alloc(t, p, 3*mib)
				if i%2 == 1 {
					defer p.Free(b)
				}
			}
		}, 30 * mib, "EmptyCache"},
		{"the device has less", memory.Refused, false, 16 * mib, nil, 24 * mib, "what else uses the device"},
		{"a test", memory.Injected, false, none, func(_ *testing.T, p *memory.Pool) { p.FailAt(0) }, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := memory.New(broke{left: &tt.device}, memory.Config{LimitBytes: 64 * mib, Growable: tt.growable})
			if tt.prepare != nil {
				tt.prepare(t, p)
			}
			before := p.Stats()
			_, err := p.Alloc(memory.Request{Bytes: tt.ask, Category: memory.Casts, Owner: module{"h.3.mlp", "linear", "gpt.go:41"}})
			e := full(t, err)
			if e.Cause != tt.cause || e.Requested != tt.ask || e.Path != "h.3.mlp" || e.Op != "linear" || e.At != "gpt.go:41" {
				t.Errorf("%+v; want cause %s", e, tt.cause)
			}
			after := p.Stats()
			if after.Allocated != before.Allocated || after.OutOfMemory != before.OutOfMemory+1 || e.Count != after.OutOfMemory {
				t.Errorf("before %+v, after %+v, count %d", before, after, e.Count)
			}
			if line := e.Error(); strings.Contains(line, "\n") || !strings.Contains(line, "for casts in h.3.mlp, linear at gpt.go:41 ("+string(tt.cause)+")") {
				t.Errorf("%q", line)
			}
			report := e.Report()
			_, advice, ok := strings.Cut(report, "advice: ")
			if ok != (tt.advice != "") || !strings.Contains(advice, tt.advice) {
				t.Errorf("want advice %q:\n%s", tt.advice, report)
			}
			if tt.cause == memory.Refused && (e.Refusal != errBroke.Error() || !strings.Contains(report, e.Refusal) || !strings.HasSuffix(e.Error(), e.Refusal)) {
				t.Errorf("the device's own words are lost:\n%s", report)
			}
		})
	}
}

// The five largest of the module paths, blocks of one path together.
func TestHolders(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 64 * mib})
	for i, path := range []string{"a", "b", "c", "d", "e", "f", "a"} {
		if _, err := p.Alloc(memory.Request{Bytes: int64(512 * (i + 1)), Owner: module{path: path}}); err != nil {
			t.Fatal(err)
		}
	}
	alloc(t, p, 512)
	_, err := p.Alloc(memory.Request{Bytes: 65 * mib})
	got := full(t, err).Holders
	want := []memory.Holder{{"a", 8 * 512}, {"f", 6 * 512}, {"e", 5 * 512}, {"d", 4 * 512}, {"c", 3 * 512}}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("%v; want %v", got, want)
		}
	}
	if m := p.ByPath(); m[""] != 512 || m["a"] != 8*512 || len(m) != 7 {
		t.Fatal(m)
	}
}

func TestRescue(t *testing.T) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 8 * mib})
	b := alloc(t, p, 5*mib)
	calls := 0
	r := memory.Request{Bytes: 4 * mib, Rescue: func() int64 {
		calls++
		if calls > 1 {
			return 0
		}
		p.Free(b)
		return 5 * mib
	}}
	if _, err := p.Alloc(r); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); calls != 1 || s.Rescues != 1 || s.RescuedBytes != 5*mib || s.OutOfMemory != 0 {
		t.Fatalf("%d calls, %+v", calls, s)
	}
	r.Bytes = 8 * mib
	if _, err := p.Alloc(r); err == nil {
		t.Fatal("more than the limit")
	}
	if s := p.Stats(); calls != 2 || s.Rescues != 1 || s.OutOfMemory != 1 {
		t.Fatalf("a rescue that freed nothing: %d calls, %+v", calls, s)
	}
	p.FailAt(1)
	r.Bytes = 2 * mib
	if _, err := p.Alloc(r); err != nil {
		t.Fatal(err)
	}
	r.Bytes = 1
	if _, err := p.Alloc(r); full(t, err).Cause != memory.Injected || calls != 2 {
		t.Fatalf("%v after %d rescues", err, calls)
	}
	r.Bytes = 2*mib - 512
	if _, err := p.Alloc(r); err != nil {
		t.Fatal(err)
	}
}
