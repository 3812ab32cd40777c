package host

import (
	"math"
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Over all random bits the mean is exactly the number, and only its neighbours occur.
func TestRoundB16(t *testing.T) {
	for _, x := range []float32{0, 1, -1, 1.001, -1.001, 3.14159e-20, -2.71828e20, 1e-40, 1.9999999} {
		low := driver.B16(math.Float32bits(x) >> 16)
		var sum float64
		for bits := range uint32(1 << 16) {
			b := roundB16(x, 0xabcd0000|bits)
			if b != low && b != low+1 {
				t.Fatalf("%v became %v", x, b.Float32())
			}
			sum += float64(b.Float32())
		}
		if got := sum / (1 << 16); !(math.Abs(got-float64(x)) <= 1e-12*math.Abs(float64(x))) {
			t.Errorf("the mean of %v is %v", x, got)
		}
	}
	inf := float32(math.Inf(1))
	for _, x := range []float32{inf, -inf, 0, 1.5, -256} { // bfloat16 already
		if got := roundB16(x, 0xffff).Float32(); got != x {
			t.Errorf("%v became %v", x, got)
		}
	}
	if got := roundB16(float32(math.NaN()), 0xffff).Float32(); got == got {
		t.Errorf("NaN became %v", got)
	}
}

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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/number")
}
