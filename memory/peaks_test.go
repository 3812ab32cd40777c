package memory

import (
	"strings"
	"testing"
)

// What one phase has cached goes back before another one reserves beyond the threshold.
func TestTrim(t *testing.T) {
	p := New(dryTestSource{}, Config{LimitBytes: 1 << 30})
	p.SetTrim(100 << 20)
	phase := func(bytes int64) {
		t.Helper()
		b, err := p.Alloc(Request{Bytes: bytes})
		if err != nil {
			t.Fatal(err)
		}
		p.Free(b)
	}
	phase(60 << 20)
	phase(30 << 20) // fits into what is cached
	if s := p.Stats(); s.Reserved != 60<<20 || s.Trims != 0 {
		t.Errorf("reserved %d, %d trims", s.Reserved, s.Trims)
	}
	phase(80 << 20)
	if s := p.Stats(); s.Reserved != 80<<20 || s.Trims != 1 {
		t.Errorf("reserved %d, %d trims", s.Reserved, s.Trims)
	}
	if _, err := p.Alloc(Request{Bytes: 300 << 20}); err != nil { // it is no limit
		t.Error(err)
	}
	p.SetTrim(0)
	if _, err := p.Alloc(Request{Bytes: 400 << 20}); err != nil {
		t.Error(err)
	}
	if s := p.Stats(); s.Reserved != 700<<20 || s.Trims != 2 {
		t.Errorf("reserved %d, %d trims", s.Reserved, s.Trims)
	}
}

// Where a limit leaves no room, a small request is served from what was kept for large
// ones, and the other way round.
func TestNoRoomOfItsOwn(t *testing.T) {
	p := New(dryTestSource{}, Config{LimitBytes: 3 << 20})
	for _, n := range []int64{1 << 20, 1 << 20, 512 << 10, 2 << 10} { // 2 MiB of small ones, then the last 1 MiB
		if _, err := p.Alloc(Request{Bytes: n}); err != nil {
			t.Fatal(n, err)
		}
	}
	p = New(dryTestSource{}, Config{LimitBytes: 3 << 20})
	if _, err := p.Alloc(Request{Bytes: 3<<19 + 512}); err != nil { // takes all 3 MiB
		t.Fatal(err)
	}
	if _, err := p.Alloc(Request{Bytes: 2 << 10}); err != nil {
		t.Error(err)
	}
	if s := p.Stats(); s.Reserved != 3<<20 {
		t.Errorf("reserved %d", s.Reserved)
	}
}

// What would help goes by what memory is for, the request included; not where the cause
// is another one, and nothing that is too small to matter.
func TestSaversThatWouldHelp(t *testing.T) {
	p := New(dryTestSource{}, Config{LimitBytes: 64 << 20})
	for c, n := range map[Category]int64{OptimizerState: 20 << 20, Gradients: 10 << 20, Parameters: 10 << 20} {
		if _, err := p.Alloc(Request{Bytes: n, Category: c}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.Alloc(Request{Bytes: 100 << 20, Category: Activations})
	e := err.(*OutOfMemoryError)
	want := []string{"a quarter", "amp.Autocast", "checkpoint.Every(1)", "offload.Activations", "optim.AdamWConfig", "Window.BackwardStep"}
	if len(e.Savers) != len(want) {
		t.Fatalf("%v", e.Savers)
	}
	for i, s := range e.Savers {
		if !strings.HasPrefix(s.Name, want[i]) || s.Bytes <= 0 || i > 0 && s.Bytes > e.Savers[i-1].Bytes {
			t.Errorf("%d: %v, want %s", i, s, want[i])
		}
	}
	if e.Savers[1].Bytes != (100<<20)/100*45 {
		t.Error(e.Savers[1])
	}
	_, err = p.Alloc(Request{Bytes: 30 << 30, Category: Workspace})
	if l := err.(*OutOfMemoryError).Savers; len(l) != 0 {
		t.Errorf("for a workspace that no saver makes smaller: %v", l)
	}
	p.FailAt(0)
	_, err = p.Alloc(Request{Bytes: 1, Category: Activations})
	if l := err.(*OutOfMemoryError).Savers; len(l) != 0 {
		t.Errorf("for a failure that a test asked for: %v", l)
	}
}

type dryTestSource struct{}

func (dryTestSource) Map(int64) ([]byte, error) { return nil, nil }
func (dryTestSource) Unmap([]byte)              {}

// A category's peak is its own, also of bytes that come by SetCategory.
func TestCategoryPeaks(t *testing.T) {
	p := New(dryTestSource{}, Config{LimitBytes: 1 << 30})
	get := func(n int64, c Category) *Block {
		t.Helper()
		b, err := p.Alloc(Request{Bytes: n, Category: c})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a := get(1024, Activations)
	p.Free(get(4096, Workspace)) // the peak of all
	b := get(512, Activations)
	b.SetCategory(Gradients)
	p.Free(a)
	s := p.Stats()
	want := ByCategory{Activations: 1536, Workspace: 4096, Gradients: 512}
	if s.Peaks != want || s.AtPeak[Activations] != 1024 {
		t.Errorf("peaks %v, want %v; at the peak %v", s.Peaks, want, s.AtPeak)
	}
	if p.ResetPeak(); p.Stats().Peaks != (ByCategory{Gradients: 512}) {
		t.Errorf("peaks %v", p.Stats().Peaks)
	}
}
