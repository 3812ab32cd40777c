package host

import (
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// How an array is cut into runs makes no difference.
func TestRoundRowInParts(t *testing.T) {
	src := make([]float32, 100)
	for i := range src {
		src[i] = 1 + float32(i)/777
	}
	key := [3]uint64{1 << 40, 2, 3}
	whole, parts := make([]driver.B16, 100), make([]driver.B16, 100)
	roundRow(whole, src, key, 0)
	for at, n := 0, 1; at < 100; at, n = at+n, n%13+3 {
		end := min(at+n, 100)
		roundRow(parts[at:end], src[at:end], key, at)
	}
	if !slices.Equal(whole, parts) {
		t.Error(whole, parts)
	}
	other := make([]driver.B16, 100)
	roundRow(other, src, [3]uint64{1 << 40, 3, 3}, 0)
	if slices.Equal(whole, other) {
		t.Error("another step draws the same")
	}
}

func BenchmarkRoundRow(b *testing.B) {
	src, dst := make([]float32, 4096), make([]driver.B16, 4096)
	for b.Loop() {
		roundRow(dst, src, [3]uint64{1, 2, 3}, 0)
	}
	b.SetBytes(6 * 4096)
}
