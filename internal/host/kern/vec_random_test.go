package kern

import (
	"math"
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

// Rows of random numbers against their formulas, at every length about a vector's, and no further.
func TestDraws(t *testing.T) {
	numbers := make([]uint32, 10_000)
	Philox(numbers, [3]uint64{1, 2, 3}, 0)
	for i := range 8 { // radii and angles at their ends
		numbers[2*i] = []uint32{0, 1 << 8, 0xffffffff, 0xfffffe00}[i%4]
		numbers[2*i+1] = []uint32{0, 0xffffffff, 1 << 29, 1<<30 - 1, 1 << 30, 1 << 31, 3 << 29, 7 << 29}[i]
	}
	const scale, shift = 0.7, -0.3
	levels(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 15, 16, 17, 33, 63, len(numbers)} {
			dst := make([]float32, n+1)
			dst[n] = 77
			UniformRow(dst[:n], numbers, scale, shift)
			for i, x := range dst[:n] {
				if want := float32(float64(driver.Unit(numbers[i])*scale) + shift); x != want {
					t.Fatalf("element %d of %d is %v, want %v", i, n, x, want)
				}
			}
			NormalRow(dst[:n], numbers, scale, shift)
			for i, x := range dst[:n] {
				r := math.Sqrt(-2 * math.Log(1-driver.Unit(numbers[i&^1])))
				sin, cos := math.Sincos(2 * math.Pi * driver.Unit(numbers[i|1]))
				want := r*[]float64{cos, sin}[i%2]*scale + shift
				if !(math.Abs(float64(x)-want) <= 3e-7*(1+math.Abs(want))) {
					t.Fatalf("element %d of %d is %v, want %v", i, n, x, want)
				}
			}
			if dst[n] != 77 {
				t.Fatalf("row of %d is written beyond", n)
			}
		}
	})
}

func BenchmarkDraws(b *testing.B) {
	numbers, dst := make([]uint32, 4096), make([]float32, 4096)
	Philox(numbers, [3]uint64{1, 2, 3}, 0)
	for _, k := range []struct {
		name string
		run  func()
	}{
		{"philox", func() { Philox(numbers, [3]uint64{1, 2, 3}, 0) }},
		{"drop", func() { DropRow(dst, dst, numbers, 0.1, 1) }},
		{"uniform", func() { UniformRow(dst, numbers, 1, 0) }},
		{"normal", func() { NormalRow(dst, numbers, 1, 0) }},
	} {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(4 * 4096)
			for b.Loop() {
				k.run()
			}
		})
	}
}
