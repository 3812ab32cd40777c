package kern

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Rows against their formulas, at every length about a vector's, and no further.
func TestAdafactorRows(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	levels(t, func(t *testing.T) {
		for n := range 40 {
			x, w := randoms[float32](r, n), append(randoms[float32](r, n), 77)
			sums := make([]float64, n+1)
			for i := range sums {
				sums[i] = float64(i) + 1
			}
			var all, scaled float64
			for i, x := range x {
				all += float64(x) * float64(x)
				scaled += math.Pow(float64(x)*sums[i], 2)
			}
			if got := ScaledSquares(x, sums); !(math.Abs(got-scaled) <= 1e-12*(1+scaled)) {
				t.Fatalf("scaled squares of %d: %v, want %v", n, got, scaled)
			}
			before := append([]float32(nil), w...)
			AdafactorRow(w[:n], x, sums, 0.1, 0.9)
			for i := range w {
				want := float64(before[i])
				if i < n {
					want = 0.9*want - 0.1*sums[i]*float64(x[i])
				}
				if !(math.Abs(float64(w[i])-want) <= 1e-6*(1+math.Abs(want))) {
					t.Fatalf("weight %d of %d is %v, want %v", i, n, w[i], want)
				}
			}
			if got := SquareColumns(sums[:n], x); !(math.Abs(got-all) <= 1e-12*(1+all)) {
				t.Fatalf("squares of %d: %v, want %v", n, got, all)
			}
			for i, s := range sums {
				want := float64(i) + 1
				if i < n {
					want += float64(x[i]) * float64(x[i])
				}
				if s != want {
					t.Fatalf("sum %d of %d is %v, want %v", i, n, s, want)
				}
			}
		}
	})
}
