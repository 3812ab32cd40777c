package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// All three passes at the sizes of real layers, whose channels do not fill the last tile:
// near the same in float64, the same bits for every number of threads, and with a workspace
// that held NaNs.
func TestConvThreadsAndChannels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, ch := range [][2]int{{3, 64}, {64, 64}, {64, 128}, {128, 128}, {30, 50}} {
		for _, h := range []int{1, 2, 4, 9, 16} {
			for _, k := range []int{1, 3} {
				for _, s := range []int{1, 2} {
					c := Conv{N: 2, C: ch[0], H: h, W: h, O: ch[1], KH: k, KW: k, SH: s, SW: s, PH: k / 2, PW: k / 2, DH: 1, DW: 1, G: 1}
					t.Run(fmt.Sprintf("%dto%d %dx%d kernel%d stride%d", c.C, c.O, h, h, k, s), func(t *testing.T) { allPasses(t, c, rng) })
				}
			}
		}
	}
	t.Run("weights in parts", func(t *testing.T) { // of so many channels not all are transformed at once
		allPasses(t, Conv{N: 2, C: 300, H: 4, W: 4, O: 272, KH: 3, KW: 3, SH: 1, SW: 1, PH: 1, PW: 1, DH: 1, DW: 1, G: 1}, rng)
	})
	t.Run("more parts than panels", func(t *testing.T) {
		allPasses(t, square(4, 256, 4, 4, 256, 3, 1, 1, 1, 1), rng)
	})
}

// Winograd's transforms round more than the direct way does, which is that of the level avx2. Errors and results are
// compared in their root mean squares.
func TestWinogradError(t *testing.T) {
	if level < avx512 {
		t.Skip("the direct way is the only one")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []Conv{square(2, 64, 32, 32, 64, 3, 1, 1, 1, 1), square(2, 256, 8, 8, 256, 3, 1, 1, 1, 1), square(2, 64, 56, 56, 64, 3, 1, 1, 1, 1), square(2, 128, 14, 14, 128, 3, 1, 1, 1, 1)} {
		nx, nw, ny := c.sizes()
		x, w, dy := random(rng, nx), random(rng, nw), random(rng, ny)
		exact, passes := convPasses(c, wide(x), wide(w), wide(dy)), convPasses(c, x, w, dy)
		for pass := range passes {
			want := exact[pass](driver.Float64, 0)
			off := func(level int) float64 {
				useLevel(t, level)
				var errors, squares float64
				for i, v := range passes[pass](driver.Float32, 0) {
					errors += (float64(v) - want[i]) * (float64(v) - want[i])
					squares += want[i] * want[i]
				}
				return math.Sqrt(errors / squares)
			}
			winograd, direct := off(machine), off(avx2)
			t.Logf("%dx%d, pass %d: tiles of %d %.2g, directly %.2g", c.H, c.W, pass, c.tileSize(Pass(pass)), winograd, direct)
			if !(winograd <= 2e-6 && winograd <= 6*direct) {
				t.Errorf("%dx%d, pass %d: off by %g, the direct way by %g", c.H, c.W, pass, winograd, direct)
			}
		}
	}
}

func allPasses(t *testing.T, c Conv, rng *rand.Rand) {
	out := (c.H+2*c.PH-c.KH)/c.SH + 1
	x, w, dy := random(rng, c.N*c.C*c.H*c.H), random(rng, c.C*c.O*c.KH*c.KH), random(rng, c.N*c.O*out*out)
	passes := convPasses(c, x, w, dy)
	exact := convPasses(c, wide(x), wide(w), wide(dy))
	for p, name := range []string{"forward", "backward data", "backward weights"} {
		want := exact[p](driver.Float64, 1)
		first := passes[p](driver.Float32, 1)
		for i, v := range want {
			if !(math.Abs(v-float64(first[i])) <= 1e-4*math.Sqrt(float64(c.C*c.KH*c.KW+c.N*out*out))) {
				t.Fatalf("%s: element %d is %v, want %v", name, i, first[i], v)
			}
		}
		for _, threads := range []int{2, 3} {
			if got := passes[p](driver.Float32, threads); !slices.Equal(got, first) {
				t.Fatalf("%s: %d threads give other bits than one", name, threads)
			}
		}
	}
}

func random(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

func wide(v []float32) []float64 {
	w := make([]float64, len(v))
	for i := range v {
		w[i] = float64(v[i])
	}
	return w
}

func convPasses[T float32 | float64](c Conv, x, w, dy []T) [3]func(t driver.DType, threads int) []T {
	pass := func(p Pass, n int, run func(threads int, out []T, work []byte)) func(driver.DType, int) []T {
		return func(t driver.DType, threads int) []T {
			out, work := make([]T, n), make([]byte, ConvWorkspace(t, c, p, threads))
			for i := range work {
				work[i] = 0xff
			}
			run(threads, out, work)
			return out
		}
	}
	return [3]func(driver.DType, int) []T{
		pass(Forward, len(dy), func(threads int, out []T, work []byte) { ConvForward(threads, c, x, w, nil, out, work) }),
		pass(BackwardData, len(x), func(threads int, out []T, work []byte) { ConvBackwardData(threads, c, dy, w, out, work) }),
		pass(BackwardWeights, len(w), func(threads int, out []T, work []byte) { ConvBackwardWeights(threads, c, x, dy, out, work) }),
	}
}

// Images of 16 bits, of which each thread convolves chunks of its own: the same bits as of one thread.
func TestConvChunksApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const threads = 2
	for _, n := range []int{8, 20} {
		cv := square(n, 32, 32, 32, 48, 3, 1, 1, 1, 1)
		nx, nw, ny := cv.sizes()
		w := random(rng, nw)
		for _, pass := range []Pass{Forward, BackwardData} {
			from, to := nx, ny
			if pass == BackwardData {
				from, to = ny, nx
			}
			if convWinograd[float32](cv, pass) && cv.chunkApart(pass, threads) == 0 {
				t.Errorf("%d images, pass %d: the threads share chunks", n, pass)
			}
			x := make([]driver.B16, from)
			NarrowRow(x, random(rng, from))
			run := func(threads int) []driver.B16 {
				y := make([]driver.B16, to)
				work := make([]byte, ConvMixedWorkspace(driver.BFloat16, driver.Float32, cv, pass, threads))
				for i := range work {
					work[i] = 0xff // NaNs
				}
				runConv(threads, cv, pass, x, w, nil, y, work)
				return y
			}
			if !slices.Equal(run(threads), run(1)) {
				t.Errorf("%d images, pass %d: bits depend on the number of threads", n, pass)
			}
		}
	}
}
