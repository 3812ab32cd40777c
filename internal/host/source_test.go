package host

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/snug-ml/snug/memory"
)

var _ interface {
	memory.Source
	memory.Filler
} = Source{}

func TestSourceMap(t *testing.T) {
	for _, n := range []int64{1, 512, 2 << 20, 2<<20 + 512} {
		mem, err := Source{}.Map(n)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(mem)) != n || uintptr(unsafe.Pointer(&mem[0]))%64 != 0 {
			t.Fatalf("%d bytes: %d at %p", n, len(mem), &mem[0])
		}
		for i, b := range mem {
			if b != 0 {
				t.Fatalf("%d bytes: byte %d is %d", n, i, b)
			}
		}
		Source{}.Fill(mem, 0xFF)
		if got := bytes.Count(mem, []byte{0xFF}); int64(got) != n {
			t.Fatalf("%d of %d bytes are filled", got, n)
		}
		Source{}.Unmap(mem)
	}
	Source{}.Fill(nil, 0xFF)
}

// What the system cannot give is an error value, and the pool's error says so.
func TestSourceRefuses(t *testing.T) {
	p := memory.New(Source{}, memory.Config{LimitBytes: 1 << 62, Growable: true})
	defer p.Close()
	_, err := p.Alloc(memory.Request{Bytes: 1 << 60})
	e, ok := err.(*memory.OutOfMemoryError)
	if !ok || e.Cause != memory.Refused || e.Refusal == "" {
		t.Fatalf("%v", err)
	}
}
