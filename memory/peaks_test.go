package memory

import "testing"

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
