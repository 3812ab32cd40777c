package kern

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestAttendColumns(t *testing.T) {
	levels(t, func(t *testing.T) {
		attendColumns[float32](t, 3e-6)
		attendColumns[float64](t, 1e-14)
	})
}

func attendColumns[T floating](t *testing.T, tol float64) {
	for _, n := range []int{1, 2, 5, 67} {
		const scale = 0.3
		s, d := make([]T, (n+1)*AttendLanes), make([]T, (n+1)*AttendLanes)
		for i := range s {
			s[i], d[i] = T(20*math.Sin(float64(i*i+n))), T(math.Cos(float64(i)))
		}
		s[3] = T(math.Inf(-1)) // of a key that is not seen
		p, back, grads := append([]T(nil), s...), append([]T(nil), s...), append([]T(nil), d...)
		var sums, by, inner [AttendLanes]T
		AttendColumns(p[:n*AttendLanes], scale, &sums, &by)
		for l := range inner {
			inner[l] = T(l) / 7
		}
		AttendBackColumns(back[:n*AttendLanes], grads[:n*AttendLanes], scale, &sums, &inner)
		for l := range sums {
			if n == 1 && l == 3 {
				continue
			}
			greatest, all := math.Inf(-1), 0.0
			for k := range n {
				greatest = max(greatest, float64(s[k*AttendLanes+l]))
			}
			for k := range n {
				all += math.Exp(scale * (float64(s[k*AttendLanes+l]) - greatest))
			}
			if want := scale*greatest + math.Log(all); !(math.Abs(float64(sums[l])-want) <= tol) || !(math.Abs(float64(by[l])*all-1) <= tol) {
				t.Fatalf("%d keys: column %d: logarithm %v of the sum, inverse %v, want %v and %v", n, l, sums[l], by[l], want, 1/all)
			}
			for k := range n {
				i := k*AttendLanes + l
				want := math.Exp(scale * (float64(s[i]) - greatest))
				if got := float64(p[i]); !(math.Abs(got-want) <= tol*want) {
					t.Fatalf("%d keys: %d of column %d is %v, want %v", n, k, l, got, want)
				}
				want /= all
				if got := float64(back[i]); !(math.Abs(got-want) <= tol*want) {
					t.Fatalf("%d keys: probability %d of column %d is %v, want %v", n, k, l, got, want)
				}
				want *= (float64(d[i]) - float64(inner[l])) * scale
				if got := float64(grads[i]); !(math.Abs(got-want) <= 2*tol*math.Abs(want)+1e-9) {
					t.Fatalf("%d keys: gradient %d of column %d is %v, want %v", n, k, l, got, want)
				}
			}
		}
		for i := n * AttendLanes; i < len(s); i++ {
			if p[i] != s[i] || back[i] != s[i] || grads[i] != d[i] {
				t.Fatalf("%d keys: wrote behind them", n)
			}
		}
	}
	s := make([]T, 3*AttendLanes)
	s[AttendLanes+5] = T(math.NaN())
	var sums, by [AttendLanes]T
	AttendColumns(s, 1, &sums, &by)
	if sums[5] == sums[5] || by[5] == by[5] || !(math.Abs(float64(sums[4])-math.Log(3)) <= tol) {
		t.Errorf("a NaN gives the logarithm %v and the inverse %v, and the column before %v", sums[5], by[5], sums[4])
	}
}

// A product in place is Gemm's.
func TestProduct(t *testing.T) {
	levels(t, func(t *testing.T) {
		product[float32](t)
		product[float64](t)
	})
}

func product[T floating](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fill := func(n int) []T {
		v := make([]T, n)
		for i := range v {
			v[i] = T(r.NormFloat64())
		}
		return v
	}
	for _, s := range [][3]int{{1, 1, 1}, {33, 32, 5}, {14, 40, 32}, {3, 7, 0}, {29, 17, 70}} {
		m, n, k := s[0], s[1], s[2]
		for _, acc := range []bool{false, true} {
			for _, turned := range []bool{false, true} {
				a := Mat[T]{fill(m*(k+2) + k*(m+2)), k + 2, 1}
				if turned {
					a.RS, a.CS = 1, m+2
				}
				b := Mat[T]{fill(k*(n+3) + 1), n + 3, 1}
				c := Mat[T]{fill(m * (n + 1)), n + 1, 1}
				want := append([]T(nil), c.Data...)
				for i := range m {
					for j := range n {
						sum := 0.0
						if acc {
							sum = float64(want[i*(n+1)+j])
						}
						for p := range k {
							sum += float64(a.Data[i*a.RS+p*a.CS]) * float64(b.Data[p*(n+3)+j])
						}
						want[i*(n+1)+j] = T(sum)
					}
				}
				Product(m, n, k, a, b, c, acc)
				for i, v := range c.Data {
					if !(math.Abs(float64(v-want[i])) <= 1e-5) {
						t.Fatalf("%v, added %v, turned %v: element %d is %v, want %v", s, acc, turned, i, v, want[i])
					}
				}
			}
		}
	}
}

func TestColumnsOf(t *testing.T) {
	levels(t, func(t *testing.T) {
		columnsOf[float32](t)
		columnsOf[float64](t)
	})
}

func columnsOf[T floating](t *testing.T) {
	for _, m := range []int{1, 15, 16, 17, 32} {
		for _, n := range []int{1, 3, 4, 8, 21, 64} {
			src := make([]T, m*(n+1))
			for i := range src {
				src[i] = T(i + 1)
			}
			dst := make([]T, n*AttendLanes+PackSlack)
			Columns(dst, AttendLanes, Mat[T]{src, n + 1, 1}, m, n)
			for i := range m {
				for p := range n {
					if got := dst[p*AttendLanes+i]; got != src[i*(n+1)+p] {
						t.Fatalf("%d rows of %d: column %d of row %d is %v", m, n, p, i, got)
					}
				}
			}
		}
	}
}

func TestRowsEach(t *testing.T) {
	levels(t, func(t *testing.T) {
		rowsEach[float32](t)
		rowsEach[float64](t)
	})
}

func rowsEach[T floating](t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 64} {
		const m = 5
		x, y := Mat[T]{make([]T, m*(n+2)), n + 2, 1}, Mat[T]{make([]T, m*(n+3)), n + 3, 1}
		for i := range x.Data {
			x.Data[i] = T(i%7 - 3)
		}
		for i := range y.Data {
			y.Data[i] = T(i%5 - 2)
		}
		by, dots, want := []T{1, 2, -1, 0, 3}, make([]T, m), append([]T(nil), x.Data...)
		DotRows(dots, x, y, n)
		ScaleRows(x, n, by)
		for r := range m {
			var dot T
			for i := range n {
				dot += want[r*(n+2)+i] * y.Data[r*(n+3)+i]
				want[r*(n+2)+i] *= by[r]
			}
			if dots[r] != dot {
				t.Fatalf("%d columns: product of rows %d is %v, want %v", n, r, dots[r], dot)
			}
		}
		for i, v := range x.Data {
			if v != want[i] {
				t.Fatalf("%d columns: element %d is %v, want %v", n, i, v, want[i])
			}
		}
	}
}

func BenchmarkAttendColumns(b *testing.B) {
	s := make([]float32, 128*AttendLanes)
	var sums, by [AttendLanes]float32
	for b.Loop() {
		AttendColumns(s, 1, &sums, &by)
	}
	b.SetBytes(4 * 128 * AttendLanes)
}
