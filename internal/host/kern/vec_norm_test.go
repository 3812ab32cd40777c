package kern

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Each row against its formula in float64, at every length about a vector's, and no further.
func TestNormRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const mean, scale, shift, p, q = 0.3, -1.7, 0.25, 0.6, -0.4
	levels(t, func(t *testing.T) {
		for n := range 70 {
			random := func() []float32 { return append(randoms[float32](r, n), 77) }
			x, y, w, dst := random(), random(), random(), random()
			f := func(s []float32, i int) float64 { return float64(s[i]) }
			row := func(name string, run func(), want func(i int) float64) {
				run()
				for i := range n {
					if w := want(i); !(math.Abs(f(dst, i)-w) <= 1e-6*(1+math.Abs(w))) {
						t.Fatalf("%s: element %d of %d is %v, want %v", name, i, n, dst[i], w)
					}
				}
				if dst[n] != 77 {
					t.Fatalf("%s writes beyond element %d", name, n)
				}
			}
			d := dst[:n]
			row("sub", func() { SubRow(d, x, y) }, func(i int) float64 { return f(x, i) - f(y, i) })
			row("div", func() { DivRow(d, x, y) }, func(i int) float64 { return f(x, i) / f(y, i) })
			row("scale", func() { ScaleRow(d, x, scale) }, func(i int) float64 { return f(x, i) * scale })
			row("lerp", func() { LerpRow(d, x, y, p, scale) }, func(i int) float64 { return f(x, i) + p*(scale*f(y, i)-f(x, i)) })
			row("clamp", func() { ClampRow(d, x, -0.5, 0.7) }, func(i int) float64 { return min(max(f(x, i), -0.5), 0.7) })
			row("clamp gradient", func() { ClampBackRow(d, x, y, -0.5, 0.7) }, func(i int) float64 {
				if -0.5 < x[i] && x[i] < 0.7 {
					return f(y, i)
				}
				return 0
			})
			slope := func(s []float32, i int) float64 {
				if x[i] <= 0 {
					return 0.01 * f(s, i)
				}
				return f(s, i)
			}
			row("leaky", func() { LeakyRow(d, x, 0.01) }, func(i int) float64 { return slope(x, i) })
			row("leaky gradient", func() { LeakyBackRow(d, x, y, 0.01) }, func(i int) float64 { return slope(y, i) })
			row("norm", func() { NormRow(d, x, mean, scale, shift) }, func(i int) float64 { return (f(x, i)-mean)*scale + shift })
			row("layer", func() { LayerRow(d, x, w, y, mean, scale) }, func(i int) float64 { return (f(x, i)-mean)*scale*f(w, i) + f(y, i) })
			row("norm gradient", func() { NormBackRow(d, y, x, scale, mean, p, q) }, func(i int) float64 {
				return scale*f(y, i) + p*(f(x, i)-mean) + q
			})
		}
	})
}

func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	nan := float32(math.NaN())
	check := func(t *testing.T, name string, n int, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 2e-7*float64(n+1)) {
			t.Fatalf("%s of %d elements is %v, want %v", name, n, got, want)
		}
	}
	levels(t, func(t *testing.T) {
		for n := range 70 {
			x, y := randoms[float32](r, n), randoms[float32](r, n)
			const mean = 0.3
			top, sum, squares, total, product := math.Inf(-1), 0.0, 0.0, 0.0, 0.0
			for i, v := range x {
				v, g := float64(v), float64(y[i])
				top = max(top, v)
				sum += v - mean
				squares += (v - mean) * (v - mean)
				total += g
				product += g * (v - mean)
			}
			s, q := MomentsRow(x, mean)
			check(t, "sum", n, s, sum)
			check(t, "squares", n, q, squares)
			s, q = ProductsRow(y, x, mean)
			check(t, "gradients", n, s, total)
			check(t, "products", n, q, product)
			if got := float64(MaxRow(x)); got != top {
				t.Fatalf("greatest of %d is %v, want %v", n, got, top)
			}
			if with := append([]float32{nan}, x...); float64(MaxRow(with)) != top {
				t.Fatalf("greatest of %d beside a NaN is %v, want %v", n, MaxRow(with), top)
			}
			if n > 0 {
				x[n-1] = nan
				if s, q := MomentsRow(x, mean); s == s || q == q {
					t.Fatalf("moments with a NaN: %v, %v", s, q)
				}
				if _, q := ProductsRow(y, x, mean); q == q {
					t.Fatalf("product with a NaN: %v", q)
				}
			}
		}
	})
}

// Columns are added in order: every level gives the same bits.
func TestColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	levels(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 2, 7} {
			for cols := range 75 {
				const distance = 80
				x, y := randoms[float32](r, n*distance+cols), randoms[float32](r, n*distance+cols)
				want, products := make([]float64, cols+1), make([]float64, cols+1)
				got, layer, gotProducts := make([]float64, cols+1), make([]float64, cols+1), make([]float64, cols+1)
				for _, s := range [][]float64{want, products, got, layer, gotProducts} {
					for j := range s {
						s[j] = 1
					}
				}
				for i := range n {
					for j := range cols {
						g := float64(x[i*distance+j])
						want[j] += g
						products[j] += float64(g*float64(y[i*distance+j]-0.3)) * float64(float32(1.7))
					}
					LayerColumns(layer[:cols], gotProducts[:cols], x[i*distance:][:cols], y[i*distance:], 0.3, 1.7)
				}
				SumColumns(got[:cols], x, distance, n)
				for j := range want {
					if got[j] != want[j] || layer[j] != want[j] || gotProducts[j] != products[j] {
						t.Fatalf("%d rows: column %d of %d is %v, %v and %v, want %v and %v", n, j, cols, got[j], layer[j], gotProducts[j], want[j], products[j])
					}
				}
			}
		}
	})
}
