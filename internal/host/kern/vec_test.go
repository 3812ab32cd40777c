package kern

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var ones = func() []float32 {
	s := make([]float32, Past+77)
	fill(s, 1)
	return s
}()

// unaries are with what they should give, and how much they may be off: relative to the result, and absolutely.
var unaries = map[string]struct {
	row           func(dst, x []float32)
	want          func(x float64) float64
	rel, absolute float64
}{
	"relu":    {ReLURow, func(x float64) float64 { return max(x, 0) }, 0, 0},
	"exp":     {ExpRow, math.Exp, 2e-7, 1e-45},
	"sigmoid": {SigmoidRow, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 4e-7, 1e-38},
	"shifted": {func(dst, x []float32) { ExpShiftRow(dst, x, 1.5) }, func(x float64) float64 { return math.Exp(x - 1.5) }, 1e-5, 1e-45},
	"silu":    {SiLURow, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, 6e-7, 1e-36},
	"gelu gradient": {func(dst, x []float32) { GELUBackRow(dst, x, ones[:len(dst)]) }, func(x float64) float64 {
		return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	}, 6e-7, 6e-7},
	"gelutanh gradient": {func(dst, x []float32) { GELUTanhBackRow(dst, x, ones[:len(dst)]) }, func(x float64) float64 {
		u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		du := math.Sqrt(2/math.Pi) * (1 + 3*0.044715*x*x)
		return (1+math.Tanh(u))/2 + x/2*du/math.Pow(math.Cosh(u), 2)
	}, 1e-6, 1e-6},
	"log":      {LogRow, math.Log, 2e-7, 0},
	"sqrt":     {SqrtRow, math.Sqrt, 6e-8, 0},
	"softplus": {SoftplusRow, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, 3e-7, 3e-45},
	"elu": {func(dst, x []float32) { ELURow(dst, x, 1.5) }, func(x float64) float64 {
		if x > 0 {
			return x
		}
		return 1.5 * math.Expm1(x)
	}, 3e-7, 1e-45},
	"sigmoid gradient": {func(dst, y []float32) { SigmoidBackRow(dst, y, ones[:len(dst)]) }, func(y float64) float64 { return y * (1 - y) }, 3e-7, 1e-6},
	"tanh gradient":    {func(dst, y []float32) { TanhBackRow(dst, y, ones[:len(dst)]) }, func(y float64) float64 { return 1 - y*y }, 3e-7, 1e-6},
	"sqrt gradient":    {func(dst, y []float32) { SqrtBackRow(dst, y, ones[:len(dst)]) }, func(y float64) float64 { return 0.5 / y }, 1e-7, 0},
	"silu gradient": {func(dst, x []float32) { SiLUBackRow(dst, x, ones[:len(dst)]) }, func(x float64) float64 {
		s := 1 / (1 + math.Exp(-x))
		return s * (1 + x*(1-s))
	}, 1e-6, 1e-6},
	"softplus gradient": {func(dst, y []float32) {
		for i, v := range y { // it has no other
			dst[i] = float32(math.Abs(float64(v)))
		}
		SoftplusBackRow(dst, dst, ones[:len(dst)])
	}, func(y float64) float64 { return -math.Expm1(-math.Abs(y)) }, 3e-7, 0},
	"tanh": {TanhRow, math.Tanh, 4e-7, 0},
	"gelu": {GELURow, func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }, 4e-7, 4e-7},
	"gelutanh": {GELUTanhRow, func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}, 4e-7, 4e-7},
}

func TestUnaryRows(t *testing.T) {
	var x []float32
	for v := float32(-110); v < 110; v += 0.0137 {
		x = append(x, v, v/100, v/1e6)
	}
	x = append(x, 0, 88.72, 88.73, -87.3, -103, 1e-38, 1e30, -1e9, float32(math.Inf(1)))
	levels(t, func(t *testing.T) {
		for name, u := range unaries {
			got := make([]float32, len(x))
			u.row(got, x)
			for i, v := range x {
				want := u.want(float64(v))
				if math.IsNaN(want) {
					continue // the formula has none for an infinity
				}
				if math.Abs(want) > math.MaxFloat32 {
					want = math.Copysign(math.Inf(1), want)
				}
				if d := math.Abs(float64(got[i]) - want); !(d <= u.rel*math.Abs(want)+u.absolute || float64(got[i]) == want) {
					t.Fatalf("%s(%v) is %v, want %v", name, v, got[i], want)
				}
			}
			nan := []float32{float32(math.NaN())}
			if u.row(nan, nan); nan[0] == nan[0] {
				t.Errorf("%s(NaN) is %v", name, nan[0])
			}
			for n := range 40 { // alone as in a row, in place, and no further
				part := append(slices.Clone(x[500:500+n]), 77)
				u.row(part[:n], part[:n])
				same := func(a, b float32) bool { return a == b || a != a && b != b }
				if !slices.EqualFunc(part[:n], got[500:500+n], same) || part[n] != 77 {
					t.Fatalf("%s of %d elements differs from the same in a row, or writes beyond", name, n)
				}
			}
		}
	})
}

// A long row goes past the caches, to memory that begins with a cache line: it is no other.
func TestLongRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x := randoms[float32](r, Past+77)
	y := randoms[float32](r, len(x))
	bits := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }
	levels(t, func(t *testing.T) {
		check := func(name string, row func(dst, x, y []float32)) {
			got, want := make([]float32, len(x)+1), make([]float32, len(x))
			for i := 0; i < len(x); i += 1000 {
				end := min(i+1000, len(x))
				row(want[i:end], x[i:end], y[i:end])
			}
			for _, shift := range []int{0, 1} {
				if row(got[shift:][:len(x)], x, y); !slices.EqualFunc(got[shift:][:len(x)], want, bits) {
					t.Errorf("%s: a long row differs from short ones", name)
				}
			}
			part := slices.Clone(x)
			if row(part, part, y); !slices.EqualFunc(part, want, bits) {
				t.Errorf("%s: a long row in place differs from short ones", name)
			}
		}
		for name, u := range unaries {
			if name != "softplus gradient" { // which overwrites its input
				check(name, func(dst, x, _ []float32) { u.row(dst, x) })
			}
		}
		check("add", AddRow)
		check("relu gradient", ReLUBackRow)
	})
}

func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	levels(t, func(t *testing.T) {
		for n := range 70 {
			random := func() []float32 { return append(randoms[float32](r, n), 77) }
			x, y := random(), random()
			compare := func(name string, got []float32, want func(i int) float64) {
				for i := range n {
					if w := want(i); !(math.Abs(float64(got[i])-w) <= 1e-6*(1+math.Abs(w))) {
						t.Fatalf("%s: element %d of %d is %v, want %v", name, i, n, got[i], w)
					}
				}
				if got[n] != 77 {
					t.Fatalf("%s writes beyond element %d", name, n)
				}
			}
			f := func(s []float32, i int) float64 { return float64(s[i]) }
			dst := random()
			AddRow(dst[:n], x, y)
			compare("add", dst, func(i int) float64 { return f(x, i) + f(y, i) })
			MulRow(dst[:n], x, y)
			compare("mul", dst, func(i int) float64 { return f(x, i) * f(y, i) })
			ReLUBackRow(dst[:n], x, y)
			compare("reluback", dst, func(i int) float64 {
				if x[i] > 0 {
					return f(y, i)
				}
				return 0
			})
			GELUBackRow(dst[:n], x, y)
			compare("gelu gradient", dst, func(i int) float64 {
				return f(y, i) * (math.Erfc(-f(x, i)/math.Sqrt2)/2 + f(x, i)*math.Exp(-f(x, i)*f(x, i)/2)/math.Sqrt(2*math.Pi))
			})
			GELUTanhBackRow(dst[:n], x, y)
			compare("gelutanh gradient", dst, func(i int) float64 {
				u := math.Sqrt(2/math.Pi) * (f(x, i) + 0.044715*math.Pow(f(x, i), 3))
				du := math.Sqrt(2/math.Pi) * (1 + 3*0.044715*f(x, i)*f(x, i))
				return f(y, i) * ((1+math.Tanh(u))/2 + f(x, i)/2*du/math.Pow(math.Cosh(u), 2))
			})
			ELUBackRow(dst[:n], x, y, 1.5)
			compare("elu gradient", dst, func(i int) float64 {
				if x[i] > 0 {
					return f(y, i)
				}
				return f(y, i) * (f(x, i) + 1.5)
			})
			sum := 0.0
			for i := range n {
				sum += f(x, i)
			}
			if d := math.Abs(SumRow(x[:n]) - sum); !(d <= 1e-12) {
				t.Fatalf("sum of %d: off by %v", n, d)
			}
			copy(dst, x)
			Axpy(dst[:n], 1.5, y)
			compare("axpy", dst, func(i int) float64 { return f(x, i) + 1.5*f(y, i) })
		}
	})
}

func BenchmarkRows(b *testing.B) {
	x, y, dst := make([]float32, 1<<14), make([]float32, 1<<14), make([]float32, 1<<14)
	for i := range x {
		x[i] = float32(i%100)/10 - 5
	}
	run := func(name string, bytes int, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(bytes * len(x)))
			for b.Loop() {
				f()
			}
		})
	}
	run("add", 12, func() { AddRow(dst, x, y) })
	for name, u := range unaries {
		run(name, 8, func() { u.row(dst, x) })
	}
	run("sum", 4, func() { SumRow(x) })
	run("squares", 4, func() { SquaresRow(x) })
	run("greatest", 4, func() { MaxRow(x) })
	run("products", 8, func() { DotRow(x, y) })
	run("sum of exponentials", 4, func() { SumExpRow(x, 5) })
	run("softmax gradient", 12, func() { SoftmaxBackRow(dst, x, y, 0.5) })
	a, c, e := make([]float32, 1<<14), make([]float32, 1<<14), make([]float32, 1<<14)
	scalars := make([]float32, 8)
	run("adam", 28, func() { Adam.Run(dst, x, a, c, nil, scalars) })
	run("amsgrad", 36, func() { AMSGrad.Run(dst, x, a, c, e, scalars) })
	run("momentum", 20, func() { Momentum.Run(dst, x, a, nil, nil, scalars) })
}
