package kern

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Vectors give the numbers of driver.Philox, also where a counter's first word is full.
func TestPhilox(t *testing.T) {
	key := [3]uint64{0x123456789abcdef0, 77, 1 << 33}
	levels(t, func(t *testing.T) {
		for _, block := range []uint64{0, 5, 1<<32 - 64, 1<<32 - 3, 1<<40 + 9} {
			for _, n := range []int{0, 1, 31, 128, 256, 301} {
				got := make([]uint32, n)
				Philox(got, key, block)
				for i, v := range got {
					if want := driver.Philox(key, block+uint64(i/4))[i%4]; v != want {
						t.Fatalf("number %d from block %d is %x, want %x", i, block, v, want)
					}
				}
			}
		}
	})
}

func TestDropRow(t *testing.T) {
	numbers := make([]uint32, 64)
	Philox(numbers, [3]uint64{1, 2, 3}, 0)
	numbers[3], numbers[4], numbers[5] = 1<<31, 1<<31-1, ^uint32(0)
	levels(t, func(t *testing.T) {
		for n := range len(numbers) {
			for _, p := range []float64{0, 0.1, 0.5, 1 - 1e-9} {
				x, dst := make([]float32, n), make([]float32, n+1)
				fill(x, 3)
				dst[n] = 77
				DropRow(dst[:n], x, numbers, p, 2)
				for i := range n {
					want := float32(6)
					if driver.Unit(numbers[i]) < p {
						want = 0
					}
					if dst[i] != want {
						t.Fatalf("p = %v: element %d of %d is %v, want %v", p, i, n, dst[i], want)
					}
				}
				if dst[n] != 77 {
					t.Fatalf("row of %d is written beyond", n)
				}
			}
		}
	})
}
