package kern

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMaxPoolRow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	levels(t, func(t *testing.T) {
		for range 2000 {
			width, rows, kernel, stride, first := 1+r.IntN(60), 1+r.IntN(4), 1+r.IntN(4), 1+r.IntN(2), r.IntN(9)
			n := (width-kernel)/stride + 1
			if width < kernel {
				continue
			}
			x := make([]float32, (rows-1)*width+(n-1)*stride+kernel+r.IntN(3)) // nothing follows the last window, or little
			for i := range x {
				switch x[i] = float32(r.IntN(5)) - 2; r.IntN(9) {
				case 0:
					x[i] = float32(math.NaN())
				case 1:
					x[i] = float32(math.Inf(-1))
				case 2:
					x[i] = float32(math.Copysign(0, -1))
				}
			}
			dst, place := make([]float32, n), make([]uint8, n)
			done := MaxPoolRow(dst, place, x, width, rows, kernel, stride, first)
			if level >= avx2 && n > 8 && done < n-1 {
				t.Fatalf("%d windows of %d", done, n)
			}
			for j := range done {
				best, at := float32(math.Inf(-1)), first
				for k := range rows * kernel {
					if v := x[k/kernel*width+j*stride+k%kernel]; v > best || v != v {
						best, at = v, first+k
					}
				}
				if math.Float32bits(dst[j]) != math.Float32bits(best) || int(place[j]) != at {
					t.Fatalf("window %d of %d: %v at %d, not %v at %d", j, n, dst[j], place[j], best, at)
				}
			}
			for j := done; j < n; j++ {
				if dst[j] != 0 || place[j] != 0 {
					t.Fatalf("window %d of %d was not to be done", j, done)
				}
			}
		}
	})
}
