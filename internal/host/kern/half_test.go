package kern

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Every 16-bit value, in rows that do and don't fill a vector, and every way to round to one.
func TestHalfRows(t *testing.T) {
	levels(t, func(t *testing.T) {
		testHalf(t, driver.B16.Float32, driver.ToB16)
		testHalf(t, driver.F16.Float32, driver.ToF16)
	})
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

// Over all random bits the mean is exactly the number, and only its neighbours occur.
func TestRoundRow(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	const n = 8 + 5
	numbers := make([]uint32, (n+1)/2)
	src, got, all := make([]float32, n), make([]driver.B16, n), make([]driver.B16, 1<<16)
	levels(t, func(t *testing.T) {
		for _, x := range []float32{0, 1, -1, 1.001, -1.001, 3.14159e-20, -2.71828e20, 1e-40, 1.9999999, inf, -inf, -256} {
			for i := range src {
				src[i] = x
			}
			for bits := 0; bits < 1<<16; bits += n {
				for i := range numbers {
					numbers[i] = uint32(uint16(bits+2*i)) | uint32(uint16(bits+2*i+1))<<16
				}
				RoundRow(got, src, numbers)
				copy(all[bits:], got)
			}
			low := driver.B16(math.Float32bits(x) >> 16)
			var sum float64
			for _, b := range all {
				if b != low && (b != low+1 || low.Float32() == x) {
					t.Fatalf("%v became %v", x, b.Float32())
				}
				sum += float64(b.Float32())
			}
			if got := sum / (1 << 16); !(math.Abs(got-float64(x)) <= 1e-12*math.Abs(float64(x)) || got == float64(x)) {
				t.Errorf("the mean of %v is %v", x, got)
			}
		}
		for i := range src {
			src[i] = nan
		}
		for RoundRow(got, src, numbers); len(got) > 0; got = got[1:] {
			if x := got[0].Float32(); x == x {
				t.Errorf("NaN became %v", x)
			}
		}
		got = make([]driver.B16, n)
	})
}

func BenchmarkHalfRows(b *testing.B) {
	full, half := make([]float32, 4096), make([]driver.B16, 4096)
	b.SetBytes(2 * 6 * 4096)
	for b.Loop() {
		NarrowRow(half, full)
		WidenRow(full, half)
	}
}
