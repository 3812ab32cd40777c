package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
)

// A layout of a matrix: row by row with a gap, column by column, neither, or the same row or column over and over.
type layout int

const (
	byRow layout = iota
	byCol
	scattered
	oneRow
	oneCol
	layouts
)

func (l layout) strides(rows, cols int) (rs, cs int) {
	switch l {
	case byRow:
		return cols + 3, 1
	case byCol:
		return 1, rows + 1
	case scattered:
		return 2*cols + 1, 2
	case oneRow:
		return 0, 1
	}
	return 1, 0
}

func toElem[T Elem](x float64) T {
	var t T
	switch p := any(&t).(type) {
	case *float32:
		*p = float32(x)
	case *float64:
		*p = x
	case *driver.B16:
		*p = driver.ToB16(float32(x))
	case *driver.F16:
		*p = driver.ToF16(float32(x))
	}
	return t
}

func fromElem[T Elem](x T) float64 {
	switch x := any(x).(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	case driver.B16:
		return float64(x.Float32())
	case driver.F16:
		return float64(x.Float32())
	}
	panic("unreachable")
}

// randomMat has exactly the elements that it needs.
func randomMat[T Elem](r *rand.Rand, l layout, rows, cols int) Mat[T] {
	rs, cs := l.strides(rows, cols)
	m := Mat[T]{nil, rs, cs}
	if rows*cols > 0 {
		m.Data = make([]T, (rows-1)*rs+(cols-1)*cs+1)
	}
	for i := range m.Data {
		m.Data[i] = toElem[T](r.Float64()*2 - 1)
	}
	return m
}

func (m Mat[T]) at(i, j int) T { return m.Data[i*m.RS+j*m.CS] }

func values[T Elem](m Mat[T], rows, cols int) (v []float64) {
	for i := range rows {
		for j := range cols {
			v = append(v, fromElem(m.at(i, j)))
		}
	}
	return v
}

// A gemmCase is a call of Gemm and what is needed to check it.
type gemmCase[T Elem] struct {
	m, n, k int
	a, b, c Mat[T] // c before the call
	acc     bool
	bias    []T
}

func randomCase[T Elem](r *rand.Rand, m, n, k int, la, lb layout, acc, bias bool) gemmCase[T] {
	g := gemmCase[T]{m, n, k, randomMat[T](r, la, m, k), randomMat[T](r, lb, k, n), randomMat[T](r, byRow, m, n), acc, nil}
	if bias {
		g.bias = randomMat[T](r, byRow, 1, n).Data
	}
	return g
}

func (g gemmCase[T]) dtype() driver.DType {
	switch any(g.c.Data).(type) {
	case []float32:
		return driver.Float32
	case []float64:
		return driver.Float64
	case []driver.B16:
		return driver.BFloat16
	}
	return driver.Float16
}

// run returns c afterwards. The workspace is full of NaN, and what lies between the rows of c must stay.
func (g gemmCase[T]) run(t testing.TB, threads int) Mat[T] {
	t.Helper()
	c := Mat[T]{append([]T(nil), g.c.Data...), g.c.RS, 1}
	work := make([]byte, GemmWorkspace(g.dtype(), g.m, g.n, g.k, threads, g.acc))
	for i := range work {
		work[i] = 0xff
	}
	Gemm(threads, g.m, g.n, g.k, g.a, g.b, c, g.acc, g.bias, work)
	for i := range c.Data {
		if i%max(c.RS, 1) >= g.n && c.Data[i] != g.c.Data[i] {
			t.Fatalf("%v: wrote between the rows, at %d", g, i)
		}
	}
	return c
}

func (g gemmCase[T]) String() string {
	return fmt.Sprintf("%v %dx%dx%d, a %d %d, b %d %d, acc %v, bias %v", g.dtype(), g.m, g.n, g.k, g.a.RS, g.a.CS, g.b.RS, g.b.CS, g.acc, g.bias != nil)
}

// check compares with sums in float64. Each addition may be off by half an ulp of the sum of all absolute values, and
// storing by half an ulp of the result.
func (g gemmCase[T]) check(t testing.TB, c Mat[T]) {
	t.Helper()
	step, ulp, tiny := 0x1p-24, 0x1p-24, 0.0
	switch g.dtype() {
	case driver.Float64:
		step, ulp = 0x1p-53, 0x1p-53
	case driver.BFloat16:
		ulp = 0x1p-8
	case driver.Float16:
		ulp, tiny = 0x1p-11, 0x1p-25
	}
	a, b := values(g.a, g.m, g.k), values(g.b, g.k, g.n)
	for i := range g.m {
		for j := range g.n {
			want, size := 0.0, 0.0
			for p := range g.k {
				x := a[i*g.k+p] * b[p*g.n+j]
				want, size = want+x, size+math.Abs(x)
			}
			if g.acc {
				want += fromElem(g.c.at(i, j))
				size += math.Abs(fromElem(g.c.at(i, j)))
			}
			if g.bias != nil {
				want += fromElem(g.bias[j])
				size += math.Abs(fromElem(g.bias[j]))
			}
			tol := step*size*float64(g.k+2) + ulp*math.Abs(want) + tiny
			if got := fromElem(c.at(i, j)); !(math.Abs(got-want) <= tol) {
				t.Fatalf("%v: c[%d, %d] is %g, want %g ± %g", g, i, j, got, want, tol)
			}
		}
	}
}

func sameBits[T Elem](t testing.TB, what string, x, y Mat[T], m, n int) {
	t.Helper()
	for i := range m {
		for j := range n {
			if a, b := fromElem(x.at(i, j)), fromElem(y.at(i, j)); math.Float64bits(a) != math.Float64bits(b) {
				t.Fatalf("%s: c[%d, %d] is %g and %g", what, i, j, a, b)
			}
		}
	}
}

func gemmThreads(t testing.TB) {
	old, alone := runtime.GOMAXPROCS(5), gemmAlone
	gemmAlone = gemmSmall
	t.Cleanup(func() { runtime.GOMAXPROCS(old); gemmAlone = alone })
}

func testGemm[T Elem](t *testing.T) {
	r := rand.New(rand.NewPCG(1, uint64(unsafe.Sizeof(*new(T)))))
	sizes := []int{0, 1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 17, 23, 24, 31, 33, 49}
	size := func() int { return sizes[r.IntN(len(sizes))] }
	coin := func() bool { return r.IntN(2) == 0 }
	try := func(m, n, k int, la, lb layout) {
		g := randomCase[T](r, m, n, k, la, lb, coin(), coin())
		one := g.run(t, 1)
		g.check(t, one)
		for _, threads := range []int{2, 3, 5} {
			sameBits(t, fmt.Sprint(g, " threads 1 and ", threads), one, g.run(t, threads), m, n)
		}
	}
	for la := range layouts {
		for lb := range layouts {
			for range 8 {
				try(size(), size(), size(), la, lb)
			}
		}
	}
	if testing.Short() {
		return
	}
	for _, s := range [][3]int{{70, 65, 67}, {61, 200, 130}, {64, 64, 64}, {3, 70, 900}, {100, 49, 500}, {1, 130, 1000}, {800, 17, 20}, {20, 1100, 30}, {300, 1, 500}, {3, 430, 70}, {500, 4, 600}, {300, 40, 1100}} {
		for _, l := range [][2]layout{{byRow, byRow}, {byRow, byCol}, {byCol, byRow}, {scattered, scattered}} {
			try(s[0], s[1], s[2], l[0], l[1])
		}
	}
}

func TestGemm(t *testing.T) {
	gemmThreads(t)
	levels(t, func(t *testing.T) {
		t.Run("float32", testGemm[float32])
		t.Run("float64", testGemm[float64])
		t.Run("bfloat16", testGemm[driver.B16])
		t.Run("float16", testGemm[driver.F16])
	})
}

// A row of the result must have the same bits alone and among others.
func TestGemmRowsAreIndependent(t *testing.T) {
	gemmThreads(t)
	r := rand.New(rand.NewPCG(3, 4))
	for _, lb := range []layout{byRow, byCol} {
		for _, nk := range [][2]int{{1, 400}, {10, 50}, {37, 500}, {150, 100}, {200, 900}} {
			n, k := nk[0], nk[1]
			all := randomCase[float32](r, 200, n, k, byRow, lb, false, true)
			want := all.run(t, 2)
			for _, m := range []int{1, 2, 6, 7, 13, 50, 199} {
				first := all
				first.m = m
				sameBits(t, fmt.Sprint(m, " rows and ", all), want, first.run(t, 1), m, n)
			}
		}
	}
}

func TestGemmWorkspaceTooSmall(t *testing.T) {
	g := randomCase[float32](rand.New(rand.NewPCG(1, 1)), 70, 70, 70, byCol, byCol, false, false)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Gemm(1, 70, 70, 70, g.a, g.b, g.c, false, nil, make([]byte, 100))
}

func FuzzGemm(f *testing.F) {
	f.Add(uint64(1), uint8(7), uint8(39), uint16(76), uint8(0x5c)) // all terms the same: so are their errors
	f.Add(uint64(1), uint8(7), uint8(9), uint16(20), uint8(0))
	f.Add(uint64(2), uint8(70), uint8(80), uint16(800), uint8(0xb7))
	f.Fuzz(func(t *testing.T, seed uint64, m, n uint8, k uint16, how uint8) {
		la, lb := layout(how%8)%layouts, layout(how/8%8)%layouts
		g := randomCase[float32](rand.New(rand.NewPCG(seed, 0)), int(m), int(n), int(k%1000), la, lb, how&64 != 0, how&128 != 0)
		one := g.run(t, 1)
		g.check(t, one)
		sameBits(t, g.String(), one, g.run(t, 2), g.m, g.n)
	})
}

func BenchmarkGemm(b *testing.B) {
	for _, s := range []struct {
		m, n, k int
		how     string
	}{
		{16, 16, 16, "nn"}, {32, 32, 32, "nn"}, {64, 64, 64, "nn"}, {128, 128, 128, "nn"}, {256, 256, 256, "nn"}, {512, 512, 512, "nn"},
		{1024, 1024, 1024, "nn"}, {512, 512, 512, "nt"}, {512, 512, 512, "tn"}, {64, 1024, 576, "nt"}, {64, 576, 1024, "nn"},
		{576, 1024, 64, "tn"}, {128, 784, 1024, "nt"}, {128, 128, 64, "nt"}, {13, 100, 77, "nn"}, {512, 49, 4608, "nn"},
		{1, 1024, 1024, "nt"}, {1, 1024, 1024, "nn"}, {1024, 1, 1024, "nn"}, {32, 10, 84, "nt"},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s/T%d", s.m, s.n, s.k, s.how, threads), func(b *testing.B) {
				benchGemm[float32](b, threads, s.m, s.n, s.k, s.how)
			})
		}
	}
	b.Run("float64/512x512x512/nn/T1", func(b *testing.B) { benchGemm[float64](b, 1, 512, 512, 512, "nn") })
	b.Run("bfloat16/512x512x512/nt/T1", func(b *testing.B) { benchGemm[driver.B16](b, 1, 512, 512, 512, "nt") })
	b.Run("float16/512x512x512/nt/T1", func(b *testing.B) { benchGemm[driver.F16](b, 1, 512, 512, 512, "nt") })
}

func benchGemm[T Elem](b *testing.B, threads, m, n, k int, how string) {
	r := rand.New(rand.NewPCG(1, 2))
	mat := func(rows, cols int, how byte) Mat[T] {
		x := Mat[T]{make([]T, rows*cols), cols, 1}
		if how == 't' {
			x.RS, x.CS = 1, rows
		}
		for i := range x.Data {
			x.Data[i] = toElem[T](r.Float64())
		}
		return x
	}
	g := gemmCase[T]{a: mat(m, k, how[0]), b: mat(k, n, how[1]), c: mat(m, n, 'n')}
	work := make([]byte, GemmWorkspace(g.dtype(), m, n, k, threads, false))
	b.ReportAllocs()
	for b.Loop() {
		Gemm(threads, m, n, k, g.a, g.b, g.c, false, nil, work)
	}
	b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	b.ReportMetric(float64(len(work)), "work-B")
}

// The kernel alone, its operands in the first-level cache: what a core can do.
func BenchmarkGemmPeak(b *testing.B) {
	kern, _ := gemmKernelOf[float32, float32]()
	const k = 128
	x, y, z := make([]float32, k*kern.rows), make([]float32, k*kern.cols), make([]float32, kern.rows*kern.cols)
	for b.Loop() {
		for range 100 {
			kern.tile(kern.rows, kern.cols, k, x, 1, kern.rows, y, kern.cols, z, kern.cols, nil, 0)
		}
	}
	b.ReportMetric(2*100*float64(kern.rows*kern.cols*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
