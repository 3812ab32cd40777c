//go:build snugdebug

package memory_test

import (
	"bytes"
	"testing"

	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/memory"
)

// What was not written yet and what is read too late are NaN.
func TestFill(t *testing.T) {
	p := memory.New(host.Source{}, memory.Config{LimitBytes: 64 * mib})
	defer p.Close()
	nan := bytes.Repeat([]byte{0xFF}, 1000)
	b := alloc(t, p, 1000)
	mem := b.Bytes()
	if !bytes.Equal(mem, nan) {
		t.Error("a new block")
	}
	clear(mem)
	p.Free(b)
	if !bytes.Equal(mem, nan) {
		t.Error("a freed block")
	}
}
