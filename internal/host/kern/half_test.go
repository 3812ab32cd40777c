package kern

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Every 16-bit value, in rows that do and don't fill a vector, and every way to round to one.
func TestHalfRows(t *testing.T) {
	testHalf(t, driver.B16.Float32, driver.ToB16)
	testHalf(t, driver.F16.Float32, driver.ToF16)
}

func testHalf[T driver.B16 | driver.F16](t *testing.T, wide func(T) float32, narrow func(float32) T) {
	t.Helper()
	const n = 8*3 + 5
	var half [n]T
	var full [n]float32
	for v := 0; v < 1<<16; v += n {
		for i := range half {
			half[i] = T(v + i)
		}
		WidenRow(full[:], half[:])
		for i, h := range half {
			if got, want := full[i], wide(h); !(got == want || got != got && want != want) {
				t.Fatalf("%T %#04x is %v, want %v", h, h, got, want)
			}
		}
		// Each value, halfway to the next, and what is just beside.
		for _, add := range []uint32{0, 0x7fff, 0x8000, 0x8001, 0x0fff, 0x1000, 0x1001} {
			for i, h := range half {
				full[i] = math.Float32frombits(math.Float32bits(wide(h)) + add)
			}
			var got [n]T
			NarrowRow(got[:], full[:])
			for i, g := range got {
				if want := narrow(full[i]); g != want && !(wide(g) != wide(g) && wide(want) != wide(want)) {
					t.Fatalf("%v becomes %T %#04x, want %#04x", full[i], g, g, want)
				}
			}
		}
	}
}

func BenchmarkHalfRows(b *testing.B) {
	full, half := make([]float32, 4096), make([]driver.B16, 4096)
	for b.Loop() {
		NarrowRow(half, full)
		WidenRow(full, half)
	}
	b.SetBytes(2 * 6 * 4096)
}
