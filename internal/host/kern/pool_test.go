package kern

import (
	"math"
	"math/rand/v2"
	"slices"
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

func TestMaxPoolBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	levels(t, func(t *testing.T) {
		for range 500 {
			h, w, kernel, padding := 3+r.IntN(9), 3+r.IntN(90), 2+r.IntN(2), r.IntN(2)
			oh, ow := (h+2*padding-kernel)/2+1, (w+2*padding-kernel)/2+1
			dy, place := randoms[float32](r, oh*ow), make([]uint8, oh*ow)
			want, got := make([]float32, h*w), append(randoms[float32](r, h*w), 77)
			for i := range oh {
				for j := range ow {
					y, x := -1, -1
					for y < 0 || y >= h || x < 0 || x >= w {
						k := r.IntN(kernel * kernel)
						place[i*ow+j] = uint8(k)
						y, x = 2*i-padding+k/kernel, 2*j-padding+k%kernel
					}
					want[y*w+x] += dy[i*ow+j]
				}
			}
			if !MaxPoolBack(got[:h*w], dy, place, w, oh, ow, kernel, 2, padding) {
				if level >= avx512 {
					t.Fatal("it was left to who calls")
				}
				return
			}
			if !slices.Equal(got[:h*w], want) || got[h*w] != 77 {
				t.Fatalf("%d by %d, kernel %d, padding %d: %v, not %v", h, w, kernel, padding, got, want)
			}
		}
	})
}
