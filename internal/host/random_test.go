package host

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Each element draws from numbers of its own, however many the elements before it drew and wherever the array begins.
func TestDraw(t *testing.T) {
	key := [3]uint64{1 << 40, 2, 3}
	of := func() func(int, func() float64) float64 {
		return func(i int, u func() float64) (sum float64) {
			for range i % 4 * (1 + i/700%2) {
				sum = sum/2 + u()
			}
			return sum
		}
	}
	for _, first := range []int{0, 4, 1 << 20} {
		for _, n := range []int{0, 1, chunk - 1, chunk + 2, 2*grain + 3} {
			got := make([]float64, n)
			a := driver.Array{Type: driver.Float64, Shape: []int{n}, Strides: []int{1}, Data: driver.Bytes(got)}
			Draw(&a, key, first, of)
			for j, v := range got {
				i, k := first+j, 0
				want := of()(i, func() float64 {
					at := uint64(i) + uint64(k)<<40
					k++
					return driver.Unit(driver.Philox(key, at/4)[at%4])
				})
				if v != want {
					t.Fatalf("element %d of %d from %d is %v, want %v", j, n, first, v, want)
				}
			}
		}
	}
}
