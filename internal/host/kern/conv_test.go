package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
	"pgregory.net/rapid"
)

func square(n, c, h, w, o, k, s, p, d, g int) Conv {
	return Conv{n, c, h, w, o, k, k, s, s, p, p, d, d, g}
}

var convCases = []Conv{
	square(2, 3, 9, 10, 8, 3, 1, 1, 1, 1), square(2, 4, 9, 10, 6, 3, 2, 1, 1, 1), square(2, 4, 7, 8, 6, 1, 1, 0, 1, 1),
	square(2, 4, 11, 12, 8, 5, 2, 2, 1, 2), square(2, 6, 8, 9, 6, 3, 1, 1, 1, 6), square(2, 6, 8, 9, 12, 3, 2, 1, 1, 6),
	square(2, 3, 16, 17, 4, 7, 2, 3, 1, 1), square(2, 4, 9, 10, 4, 3, 1, 2, 2, 1),
	square(2, 36, 8, 8, 7, 3, 1, 1, 1, 1),    // several panels and blocks
	square(1, 5, 32, 33, 13, 3, 1, 1, 1, 1),  // lines of several vectors
	square(2, 5, 20, 20, 7, 1, 2, 0, 1, 1),   // pixels that no weight reaches
	square(2, 3, 17, 16, 5, 3, 3, 1, 2, 1),   // stride 3, dilation 2
	square(2, 4, 13, 13, 6, 2, 4, 3, 1, 2),   // a stride above the size of the kernel, margins above it too
	square(2, 4, 13, 13, 6, 4, 2, 0, 2, 1),   // stride and dilation with a common divisor
	square(1, 2, 290, 3, 17, 3, 1, 1, 1, 1),  // long
	square(1, 2, 3, 290, 17, 3, 1, 1, 1, 1),  // wide
	square(1, 8, 12, 12, 20, 3, 1, 1, 1, 2),  //
	square(3, 16, 4, 4, 19, 3, 1, 1, 1, 1),   // narrower than a vector
	square(2, 32, 2, 2, 33, 3, 2, 1, 1, 1),   //
	square(2, 7, 1, 1, 9, 3, 1, 1, 1, 1),     //
	square(2, 3, 1, 1, 3, 3, 1, 1, 1, 3),     // depthwise
	square(2, 3, 1, 1, 3, 3, 2, 1, 1, 3),     //
	square(2, 3, 1, 2, 3, 3, 2, 2, 1, 3),     //
	square(2, 3, 5, 17, 3, 3, 1, 0, 1, 3),    //
	square(2, 3, 5, 35, 3, 3, 2, 0, 1, 3),    //
	square(2, 3, 6, 34, 3, 3, 2, 0, 1, 3),    //
	square(2, 3, 6, 33, 3, 3, 1, 2, 1, 3),    //
	square(2, 3, 6, 36, 3, 3, 2, 2, 1, 3),    //
	square(2, 3, 7, 37, 3, 3, 2, 2, 1, 3),    //
	square(2, 3, 7, 32, 3, 3, 2, 1, 1, 3),    //
	square(2, 3, 4, 31, 3, 3, 2, 1, 1, 3),    //
	square(2, 16, 4, 4, 19, 3, 1, 1, 1, 1),   // for Winograd
	square(3, 16, 8, 8, 17, 3, 1, 1, 1, 1),   //
	square(1, 17, 6, 38, 16, 3, 1, 1, 1, 1),  //
	square(1, 32, 13, 17, 34, 3, 1, 0, 1, 2), // odd
	square(1, 16, 14, 15, 33, 3, 1, 2, 1, 1), //
	square(1, 330, 4, 4, 16, 3, 1, 1, 1, 1),  // several blocks of weights
	square(3, 16, 12, 12, 17, 3, 1, 1, 1, 1), // tiles of 4x4: two lines of them in half a vector
	square(3, 16, 16, 32, 16, 3, 1, 1, 1, 1), // one
	square(2, 16, 9, 34, 16, 3, 1, 0, 1, 1),  // whose pixels are too many
	square(1, 16, 11, 70, 18, 3, 1, 2, 1, 1), // three parts of lines
	square(1, 64, 20, 28, 48, 3, 1, 1, 1, 2), //
	square(1, 1, 1, 1, 1, 1, 1, 0, 1, 1),     //
	square(0, 3, 5, 5, 4, 3, 1, 1, 1, 1),     // nothing
	square(2, 0, 5, 5, 4, 3, 1, 1, 1, 1),     // zeros
	square(2, 3, 0, 5, 4, 3, 1, 1, 1, 1),     //
	square(2, 3, 5, 5, 0, 3, 1, 1, 1, 1),     //
	square(2, 3, 2, 2, 4, 5, 1, 0, 1, 1),     // the kernel does not fit
	square(2, 8, 9, 9, 4, 3, 1, 1, 1, 2),     // two channels a group
	square(2, 7, 9, 9, 2, 3, 2, 1, 1, 1),
	square(2, 2, 2, 2, 2, 5, 1, 0, 1, 1),
	{2, 4, 9, 14, 6, 3, 1, 1, 2, 0, 1, 1, 1, 2}, // oblong
	{1, 3, 14, 9, 5, 2, 5, 3, 1, 1, 2, 2, 1, 1}, //
	{1, 6, 5, 7, 4, 1, 1, 1, 1, 1, 0, 1, 1, 2},  // 1x1 with margins
}

func (cv Conv) sizes() (x, w, y int) {
	return cv.N * cv.C * cv.H * cv.W, cv.O * cv.C / cv.G * cv.KH * cv.KW, cv.N * cv.O * cv.OH() * cv.OW()
}

// each calls f with the places in x, w and y of all products.
func (cv Conv) each(f func(x, w, y int)) {
	oh, ow, cg, og := cv.OH(), cv.OW(), cv.C/cv.G, cv.O/cv.G
	for n := range cv.N {
		for o := range cv.O {
			for c := range cg {
				for kh := range cv.KH {
					for kw := range cv.KW {
						for i := range oh {
							for j := range ow {
								h, w := i*cv.SH+kh*cv.DH-cv.PH, j*cv.SW+kw*cv.DW-cv.PW
								if h >= 0 && h < cv.H && w >= 0 && w < cv.W {
									f(((n*cv.C+o/og*cg+c)*cv.H+h)*cv.W+w, ((o*cg+c)*cv.KH+kh)*cv.KW+kw, ((n*cv.O+o)*oh+i)*ow+j)
								}
							}
						}
					}
				}
			}
		}
	}
}

func randoms[T floating](r *rand.Rand, n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = T(r.NormFloat64())
	}
	return s
}

// check compares with sums of products, given the sums of the products' magnitudes. Winograd's sums have parts that cancel
// out; those of tiles of 4x4 are of the whole tile, at an image's corner, too, where few products are.
func check[T floating](t rapid.TB, what string, cv Conv, pass Pass, got []T, want, magnitude []float64) {
	t.Helper()
	eps := 4 * float64(math.Nextafter32(1, 2)-1)
	if any(T(0)) == any(float64(0)) {
		eps = 1e-14
	}
	if convWinograd[T](cv, pass) {
		eps *= 4
		if cv.tileSize(pass) == 4 {
			eps *= 8
		}
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= eps*magnitude[i]+1e-30) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func testConv[T floating](t rapid.TB, dt driver.DType, cv Conv) {
	r := rand.New(rand.NewPCG(1, 2))
	nx, nw, ny := cv.sizes()
	x, w, dy, bias := randoms[T](r, nx), randoms[T](r, nw), randoms[T](r, ny), randoms[T](r, cv.O)
	type sums struct{ v, m []float64 }
	zeros := func(n int) sums { return sums{make([]float64, n), make([]float64, n)} }
	y, dx, dw := zeros(ny), zeros(nx), zeros(nw)
	add := func(s sums, i int, a, b T) {
		s.v[i] += float64(a) * float64(b)
		s.m[i] += math.Abs(float64(a) * float64(b))
	}
	cv.each(func(i, j, k int) {
		add(y, k, x[i], w[j])
		add(dx, i, w[j], dy[k])
		add(dw, j, x[i], dy[k])
	})
	var first [4][]T
	threadCounts := []int{1, 2, 3, 5}
	if dt == driver.Float64 {
		threadCounts = []int{1, 3}
	}
	for _, threads := range threadCounts {
		buf := func(n int) []T {
			s := make([]T, n)
			for i := range s {
				s[i] = T(math.NaN())
			}
			return s
		}
		work := func(p Pass) []byte {
			b := make([]byte, ConvWorkspace(dt, cv, p, threads))
			for i := range b {
				b[i] = 0xff // NaN
			}
			return b
		}
		got := [4][]T{buf(ny), buf(ny), buf(nx), buf(nw)}
		ConvForward(threads, cv, x, w, nil, got[0], work(Forward))
		ConvForward(threads, cv, x, w, bias, got[1], work(Forward))
		ConvBackwardData(threads, cv, dy, w, got[2], work(BackwardData))
		ConvBackwardWeights(threads, cv, x, dy, got[3], work(BackwardWeights))
		if first[0] == nil {
			first = got
		}
		for i := range got {
			if !slices.Equal(got[i], first[i]) {
				t.Fatalf("%d threads: result %d differs from that of one", threads, i)
			}
		}
		sum := slices.Clone(w)
		ConvAddWeights(threads, cv, x, dy, sum, work(BackwardWeights))
		for i, v := range got[3] {
			if sum[i] != w[i]+v {
				t.Fatalf("%d threads: %v is added to element %d, %v, as %v", threads, v, i, w[i], sum[i])
			}
		}
		check(t, "forward", cv, Forward, got[0], y.v, y.m)
		check(t, "data gradient", cv, BackwardData, got[2], dx.v, dx.m)
		check(t, "weight gradient", cv, BackwardWeights, got[3], dw.v, dw.m)
		b := zeros(ny)
		for i := range b.v {
			o := i / (cv.OH() * cv.OW()) % cv.O
			b.v[i], b.m[i] = y.v[i]+float64(bias[o]), y.m[i]+math.Abs(float64(bias[o]))
		}
		check(t, "forward with bias", cv, Forward, got[1], b.v, b.m)
	}
	if cv.N > 1 && ny > 0 { // alone as in a batch
		one := cv
		one.N = 1
		y1, dx1 := make([]T, ny/cv.N), make([]T, nx/cv.N)
		i := cv.N - 1
		ConvForward(1, one, x[i*nx/cv.N:], w, nil, y1, make([]byte, ConvWorkspace(dt, one, Forward, 1)))
		ConvBackwardData(1, one, dy[i*ny/cv.N:], w, dx1, make([]byte, ConvWorkspace(dt, one, BackwardData, 1)))
		if !slices.Equal(y1, first[0][i*ny/cv.N:]) || !slices.Equal(dx1, first[2][i*nx/cv.N:]) {
			t.Fatal("an image alone differs from the same in a batch")
		}
	}
}

// manyThreads are used for small images, too.
func manyThreads(t *testing.T) {
	procs, few := runtime.GOMAXPROCS(5), fewProducts
	fewProducts = 0
	t.Cleanup(func() { runtime.GOMAXPROCS(procs); fewProducts = few })
}

func TestConv(t *testing.T) {
	manyThreads(t)
	for _, cv := range convCases {
		t.Run(fmt.Sprint(cv), func(t *testing.T) {
			t.Run("float32", func(t *testing.T) {
				levels(t, func(t *testing.T) { testConv[float32](t, driver.Float32, cv) })
			})
			t.Run("float64", func(t *testing.T) { testConv[float64](t, driver.Float64, cv) })
		})
	}
}

// The 16-bit types give what float32 does of the same values, rounded once; but for the order in which chunks of images
// are summed up to the weights' gradient.
func TestConvHalf(t *testing.T) {
	manyThreads(t)
	all := halfValues
	halfValues = 5000 // several chunks
	defer func() { halfValues = all }()
	for _, cv := range []Conv{
		square(2, 3, 9, 10, 8, 3, 1, 1, 1, 1), square(0, 3, 5, 5, 4, 3, 1, 1, 1, 1), square(4, 16, 8, 8, 20, 3, 1, 1, 1, 1),
		square(2, 6, 8, 9, 6, 3, 1, 1, 1, 6), square(2, 5, 20, 20, 7, 1, 2, 0, 1, 1), square(3, 30, 7, 7, 40, 1, 1, 0, 1, 1),
	} {
		t.Run(fmt.Sprint(cv), func(t *testing.T) {
			levels(t, func(t *testing.T) {
				testConvHalf(t, driver.BFloat16, cv, driver.ToB16)
				testConvHalf(t, driver.Float16, cv, driver.ToF16)
			})
		})
	}
}

func testConvHalf[T driver.B16 | driver.F16](t *testing.T, dt driver.DType, cv Conv, narrow func(float32) T) {
	r := rand.New(rand.NewPCG(1, 2))
	nx, nw, ny := cv.sizes()
	halves := func(n int) ([]T, []float32) {
		h, f := make([]T, n), make([]float32, n)
		for i := range h {
			h[i] = narrow(float32(r.NormFloat64()))
		}
		WidenRow(f, h)
		return h, f
	}
	x, x32 := halves(nx)
	w, w32 := halves(nw)
	dy, dy32 := halves(ny)
	bias, bias32 := halves(cv.O)
	near := slices.Clone(w32)
	for i := range near {
		near[i] *= 1 + 1.0/(1<<14)
	}
	y, dx, dw := make([]float32, ny), make([]float32, nx), make([]float32, nw)
	ConvForward(2, cv, x32, w32, bias32, y, make([]byte, ConvWorkspace(driver.Float32, cv, Forward, 2)))
	ConvBackwardData(2, cv, dy32, w32, dx, make([]byte, ConvWorkspace(driver.Float32, cv, BackwardData, 2)))
	ConvBackwardWeights(2, cv, x32, dy32, dw, make([]byte, ConvWorkspace(driver.Float32, cv, BackwardWeights, 2)))
	var first [3][]T
	for _, threads := range []int{1, 3} {
		got := [3][]T{make([]T, ny), make([]T, nx), make([]T, nw)}
		ConvForward(threads, cv, x, w, bias, got[0], make([]byte, ConvWorkspace(dt, cv, Forward, threads)))
		ConvBackwardData(threads, cv, dy, w, got[1], make([]byte, ConvWorkspace(dt, cv, BackwardData, threads)))
		ConvBackwardWeights(threads, cv, x, dy, got[2], make([]byte, ConvWorkspace(dt, cv, BackwardWeights, threads)))
		if first[0] == nil {
			first = got
		}
		mixed := func(p Pass) []byte { return make([]byte, ConvMixedWorkspace(dt, driver.Float32, cv, p, threads)) }
		rounded := [2][]T{make([]T, ny), make([]T, nx)} // of weights that are near the same
		ConvForward(threads, cv, x, near, bias, rounded[0], mixed(Forward))
		ConvBackwardData(threads, cv, dy, near, rounded[1], mixed(BackwardData))
		if !slices.Equal(rounded[0], got[0]) || !slices.Equal(rounded[1], got[1]) {
			t.Fatalf("%v, %d threads: float32 weights are not rounded", dt, threads)
		}
		exact := make([]float32, nw)
		ConvBackwardWeights(threads, cv, x, dy, exact, mixed(BackwardWeights))
		sum := slices.Clone(near)
		ConvAddWeights(threads, cv, x, dy, sum, mixed(BackwardWeights))
		for i, v := range exact {
			if narrow(v) != got[2][i] || !(math.Abs(float64(near[i]+v-sum[i])) <= 1e-4) {
				t.Fatalf("%v, %d threads: element %d of a gradient is %v, %v in float32, and %v added to %v", dt, threads, i, got[2][i], v, sum[i], near[i])
			}
		}
		for i, want := range [][]float32{y, dx, dw} {
			if !slices.Equal(got[i], first[i]) {
				t.Fatalf("%v, %d threads: result %d differs from that of one", dt, threads, i)
			}
			wide := make([]float32, len(want))
			WidenRow(wide, got[i])
			for j, v := range want {
				if i < 2 && got[i][j] != narrow(v) {
					t.Fatalf("%v, %d threads: result %d, element %d is %v, want %v", dt, threads, i, j, wide[j], v)
				}
				if d := math.Abs(float64(wide[j] - v)); !(d <= math.Abs(float64(v))/128+1e-2) {
					t.Fatalf("%v, %d threads: result %d, element %d is %v, want %v", dt, threads, i, j, wide[j], v)
				}
			}
		}
	}
}

func TestConvRandomShapes(t *testing.T) {
	manyThreads(t)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		g := draw("groups", 1, 3)
		cv := Conv{N: draw("n", 1, 3), C: g * draw("channels", 1, 4), H: draw("h", 1, 14), W: draw("w", 1, 14), O: g * draw("outputs", 1, 8),
			KH: draw("kh", 1, 4), KW: draw("kw", 1, 4), SH: draw("sh", 1, 3), SW: draw("sw", 1, 3),
			PH: draw("ph", 0, 3), PW: draw("pw", 0, 3), DH: draw("dh", 1, 3), DW: draw("dw", 1, 3), G: g}
		testConv[float32](t, driver.Float32, cv)
	})
}

func BenchmarkConvBFloat16(b *testing.B) {
	for _, c := range []Conv{square(32, 64, 32, 32, 64, 3, 1, 1, 1, 1), square(32, 256, 8, 8, 256, 3, 1, 1, 1, 1), square(32, 64, 32, 32, 128, 3, 2, 1, 1, 1), square(8, 512, 28, 28, 128, 1, 1, 0, 1, 1)} {
		r := rand.New(rand.NewPCG(1, 2))
		nx, nw, ny := c.sizes()
		halves := func(n int) []driver.B16 {
			h := make([]driver.B16, n)
			NarrowRow(h, randoms[float32](r, n))
			return h
		}
		x, w, y, dx, dw := halves(nx), halves(nw), halves(ny), halves(nx), halves(nw)
		flop := 2 * float64(ny) * float64(c.C/c.G*c.KH*c.KW)
		for p, f := range []func([]byte){
			func(work []byte) { ConvForward(1, c, x, w, nil, y, work) },
			func(work []byte) { ConvBackwardData(1, c, y, w, dx, work) },
			func(work []byte) { ConvBackwardWeights(1, c, x, y, dw, work) },
		} {
			b.Run(fmt.Sprintf("%dto%d of %dx%d, %dx%d/%s", c.C, c.O, c.H, c.W, c.KH, c.KW, []string{"forward", "data", "weights"}[p]), func(b *testing.B) {
				work := make([]byte, ConvWorkspace(driver.BFloat16, c, Pass(p), 1))
				for b.Loop() {
					f(work)
				}
				b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				b.ReportMetric(float64(len(work)), "work-B")
			})
		}
	}
}

// Shapes of ResNet-18 (CIFAR stem), ResNet-50 and MobileNetV2, at the batches of docs/speed.md.
func BenchmarkConv(b *testing.B) {
	for _, c := range []struct {
		name string
		Conv
	}{
		{"r18-stem", square(32, 3, 32, 32, 64, 3, 1, 1, 1, 1)},
		{"r18-64x32", square(32, 64, 32, 32, 64, 3, 1, 1, 1, 1)},
		{"r18-128x16", square(32, 128, 16, 16, 128, 3, 1, 1, 1, 1)},
		{"r18-256x8", square(32, 256, 8, 8, 256, 3, 1, 1, 1, 1)},
		{"r18-512x4", square(32, 512, 4, 4, 512, 3, 1, 1, 1, 1)},
		{"r18-64x32-s2", square(32, 64, 32, 32, 128, 3, 2, 1, 1, 1)},
		{"r18-256x8-s2", square(32, 256, 8, 8, 512, 3, 2, 1, 1, 1)},
		{"r50-stem", square(4, 3, 224, 224, 64, 7, 2, 3, 1, 1)},
		{"r50-64x56", square(4, 64, 56, 56, 64, 3, 1, 1, 1, 1)},
		{"r50-128x28", square(4, 128, 28, 28, 128, 3, 1, 1, 1, 1)},
		{"r50-256x14", square(4, 256, 14, 14, 256, 3, 1, 1, 1, 1)},
		{"r50-512x7", square(4, 512, 7, 7, 512, 3, 1, 1, 1, 1)},
		{"r50-256x28-s2", square(4, 256, 28, 28, 256, 3, 2, 1, 1, 1)},
		{"r50-64to256x56", square(4, 64, 56, 56, 256, 1, 1, 0, 1, 1)},
		{"r50-256to64x56", square(4, 256, 56, 56, 64, 1, 1, 0, 1, 1)},
		{"r50-512to128x28", square(4, 512, 28, 28, 128, 1, 1, 0, 1, 1)},
		{"r50-256to1024x14", square(4, 256, 14, 14, 1024, 1, 1, 0, 1, 1)},
		{"r50-1024to256x14", square(4, 1024, 14, 14, 256, 1, 1, 0, 1, 1)},
		{"r50-512to2048x7", square(4, 512, 7, 7, 2048, 1, 1, 0, 1, 1)},
		{"r50-2048to512x7", square(4, 2048, 7, 7, 512, 1, 1, 0, 1, 1)},
		{"r50-512to1024x28-s2", square(4, 512, 28, 28, 1024, 1, 2, 0, 1, 1)},
		{"m2-32x112-dw", square(8, 32, 112, 112, 32, 3, 1, 1, 1, 32)},
		{"m2-96x112-dw-s2", square(8, 96, 112, 112, 96, 3, 2, 1, 1, 96)},
		{"m2-144x56-dw", square(8, 144, 56, 56, 144, 3, 1, 1, 1, 144)},
		{"m2-192x28-dw", square(8, 192, 28, 28, 192, 3, 1, 1, 1, 192)},
		{"m2-192x28-dw-s2", square(8, 192, 28, 28, 192, 3, 2, 1, 1, 192)},
		{"m2-384x14-dw", square(8, 384, 14, 14, 384, 3, 1, 1, 1, 384)},
		{"m2-960x7-dw", square(8, 960, 7, 7, 960, 3, 1, 1, 1, 960)},
		{"m2-16to96x112", square(8, 16, 112, 112, 96, 1, 1, 0, 1, 1)},
		{"m2-96to24x56", square(8, 96, 56, 56, 24, 1, 1, 0, 1, 1)},
		{"m2-144to24x56", square(8, 144, 56, 56, 24, 1, 1, 0, 1, 1)},
		{"m2-64to384x14", square(8, 64, 14, 14, 384, 1, 1, 0, 1, 1)},
		{"m2-160to960x7", square(8, 160, 7, 7, 960, 1, 1, 0, 1, 1)},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		nx, nw, ny := c.sizes()
		x, w, y := randoms[float32](r, nx), randoms[float32](r, nw), randoms[float32](r, ny)
		dx, dw := make([]float32, nx), make([]float32, nw)
		flop := 2 * float64(ny) * float64(c.C/c.G*c.KH*c.KW)
		for _, threads := range []int{1, 2} {
			for p, f := range []func([]byte){
				func(work []byte) { ConvForward(threads, c.Conv, x, w, nil, y, work) },
				func(work []byte) { ConvBackwardData(threads, c.Conv, y, w, dx, work) },
				func(work []byte) { ConvBackwardWeights(threads, c.Conv, x, y, dw, work) },
			} {
				b.Run(fmt.Sprintf("%s/%s/T%d", c.name, []string{"forward", "data", "weights"}[p], threads), func(b *testing.B) {
					work := make([]byte, ConvWorkspace(driver.Float32, c.Conv, Pass(p), threads))
					for b.Loop() {
						f(work)
					}
					b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
					b.ReportMetric(4*float64(nx+ny+nw)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
					b.ReportMetric(float64(len(work)), "work-B")
				})
			}
		}
	}
}
