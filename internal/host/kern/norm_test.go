package kern

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// Planes against their formulas in float64, at lengths about a vector's, and no further.
func TestPlanes(t *testing.T) {
	levels(t, func(t *testing.T) {
		testPlanes[float32](t, 1e-6)
		testPlanes[float64](t, 1e-14)
	})
}

func testPlanes[T float32 | float64](t *testing.T, tol float64) {
	r := rand.New(rand.NewPCG(5, 6))
	nan := T(math.NaN())
	for n := range 70 {
		for _, planes := range []int{0, 1, 3} {
			random := func() []T { return append(randoms[T](r, planes*n), 77) }
			x, y, dy, dst := random(), random(), random(), random()
			c, sums := make([]Channel[T], planes), make([]Sums, planes)
			for i := range c {
				v := randoms[T](r, 7)
				c[i] = Channel[T]{v[0], v[1], v[2], v[3] - 1, v[4] + 1, v[5], v[6]}
			}
			if n > 5 && planes > 1 {
				x[n+4], c[1].Low, c[1].High = nan, T(math.Inf(-1)), T(math.Inf(1))
			}
			passes := func(v float64, k *Channel[T]) bool { return float64(k.Low) < v && v < float64(k.High) }
			same := func(got T, want float64) bool {
				return want != want && got != got || math.Abs(float64(got)-want) <= tol*(1+math.Abs(want))
			}
			// want is of an element: its channel, the distance from the mean, what is normalized.
			check := func(name string, run func(dst []T), want func(i int, k *Channel[T], d, v float64) float64) {
				t.Helper()
				run(dst[:planes*n])
				for i := range planes * n {
					k := &c[i/n]
					d := float64(x[i]) - float64(k.Mean)
					if w := want(i, k, d, d*float64(k.Scale)+float64(k.Shift)); !same(dst[i], w) {
						t.Fatalf("%s: element %d of %d planes of %d is %v, want %v", name, i, planes, n, dst[i], w)
					}
				}
				if dst[planes*n] != 77 {
					t.Fatalf("%s writes beyond %d planes of %d", name, planes, n)
				}
			}
			added := func(name string, run func(), grad func(i int, k *Channel[T], d, v float64) (float64, float64)) {
				t.Helper()
				for i := range sums {
					sums[i] = Sums{{1}, {2}}
				}
				run()
				for i := range c {
					wantA, wantB := 1.0, 2.0
					for j := range n {
						d := float64(x[i*n+j]) - float64(c[i].Mean)
						a, b := grad(i*n+j, &c[i], d, d*float64(c[i].Scale)+float64(c[i].Shift))
						wantA += a
						wantB += b
					}
					a, b := sums[i].Total()
					if !same(T(a), wantA) || !same(T(b), wantB) {
						t.Fatalf("%s: plane %d of %d are %v, %v, want %v, %v", name, i, n, a, b, wantA, wantB)
					}
				}
			}
			bounded := func(v float64, k *Channel[T]) float64 { return min(max(v, float64(k.Low)), float64(k.High)) }
			check("norm", func(dst []T) { NormPlanes(dst, x, c) }, func(_ int, k *Channel[T], _, v float64) float64 { return bounded(v, k) })
			check("norm, add", func(dst []T) { NormAddPlanes(dst, x, y, c) }, func(i int, k *Channel[T], _, v float64) float64 {
				return bounded(v+float64(y[i]), k)
			})
			back := func(g T, k *Channel[T], d float64) float64 {
				return float64(k.Scale)*float64(g) + float64(k.P)*d + float64(k.Q)
			}
			check("gradient", func(dst []T) { NormBackPlanes(dst, dy, x, c, 100) }, func(i int, k *Channel[T], d, _ float64) float64 {
				return back(dy[i], k, d)
			})
			check("gradient that passes", func(dst []T) { PassBackPlanes(dst, dy, x, c, -100) }, func(i int, k *Channel[T], d, v float64) float64 {
				if passes(v, k) {
					return back(dy[i], k, d)
				}
				return back(0, k, d)
			})
			added("moments", func() { MomentsPlanes(sums, x[:planes*n], c, 100) }, func(_ int, _ *Channel[T], d, _ float64) (float64, float64) {
				return d, d * d
			})
			products := func(g T, d float64) (float64, float64) { return float64(g), float64(g) * d }
			added("products", func() { ProductsPlanes(sums, dy[:planes*n], x, c, 0) }, func(i int, _ *Channel[T], d, _ float64) (float64, float64) {
				return products(dy[i], d)
			})
			added("products that pass", func() { PassProductsPlanes(sums, dy[:planes*n], x, c, 0) }, func(i int, k *Channel[T], d, v float64) (float64, float64) {
				if passes(v, k) {
					return products(dy[i], d)
				}
				return products(0, d)
			})
			pass := func(i int, k *Channel[T], _, v float64) float64 {
				if passes(v+float64(y[i]), k) {
					return float64(dy[i])
				}
				return 0
			}
			grad := func(i int, k *Channel[T], d, v float64) (float64, float64) { return products(T(pass(i, k, d, v)), d) }
			run := func(dst []T) { PassAddProductsPlanes(sums, dst, dy, x, y, c, 0) }
			check("sum's gradient", run, pass)
			added("sum's products", func() { run(dst[:planes*n]) }, grad)
		}
	}
}

// What goes past the caches is what one plane at a time, too short for that, gives, and no further.
func TestPlanesPast(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const n = Past/2 + 16
	x, y := randoms[float32](r, 2*n), randoms[float32](r, 2*n)
	c := []Channel[float32]{{Mean: 0.3, Scale: 2, Shift: 0.1, Low: -1, High: 1}, {Mean: -0.1, Scale: 0.5, High: 6}}
	levels(t, func(t *testing.T) {
		for i, run := range []func(dst, x, y []float32, c []Channel[float32]){
			func(dst, x, _ []float32, c []Channel[float32]) { NormPlanes(dst, x, c) },
			func(dst, x, y []float32, c []Channel[float32]) { NormAddPlanes(dst, x, y, c) },
		} {
			s, want := make([]float32, 2*n+16), make([]float32, 2*n)
			for uintptr(unsafe.Pointer(&s[0]))%64 != 0 {
				s = s[1:]
			}
			s[2*n] = 77
			run(s[:2*n], x, y, c)
			run(want[:n], x, y, c[:1])
			run(want[n:], x[n:], y[n:], c[1:])
			if !slices.Equal(s[:2*n], want) || s[2*n] != 77 {
				t.Errorf("kernel %d writes something else", i)
			}
		}
	})
}
