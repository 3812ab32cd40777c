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
