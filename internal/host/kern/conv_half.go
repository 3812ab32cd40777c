package kern

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

// 16-bit floats are convolved in float32, some images at a time: what is widened stays in the cache. Weights may be
// float32 already; they are rounded, so that nobody need hold them in 16 bits. A processor with products of bfloat16
// (VDPBF16PS) does no more of them than of float32 where it was measured: on Sapphire Rapids half as many.

// halfValues is how many values of images and results are float32 at a time, if one image's are not more. Tests change it.
var halfValues = 1 << 19

// chunk is a number of images that divides that of all. There are more where their pixels are few beside the weights that
// are transformed.
func (cv Conv) chunk(pass Pass) int {
	if cv.N == 0 {
		return 0
	}
	values := halfValues
	if convWinograd[float32](cv, pass) && 2*cv.weights() > halfValues {
		values *= 2
	}
	n := max(1, min(cv.N, values/max(1, cv.C*cv.H*cv.W+cv.O*cv.OH()*cv.OW())))
	for cv.N%n != 0 {
		n--
	}
	return n
}

// A halfConv is a pass over chunks.
type halfConv struct {
	images, chunk int
	pass          convPass[float32]
	x, w, bias, y []float32
}

func newHalfConv(cv Conv, pass Pass, threads int, a *arena) *halfConv {
	c := &halfConv{images: cv.N, chunk: cv.chunk(pass)}
	cv.N = c.chunk
	x, y, bias := cv.N*cv.C*cv.H*cv.W, cv.N*cv.O*cv.OH()*cv.OW(), cv.O
	if pass == BackwardData {
		x, y, bias = y, x, 0
	}
	c.x, c.bias, c.y = take[float32](a, x), take[float32](a, bias), take[float32](a, y)
	c.pass = newConvPass[float32](cv, pass, threads, a)
	if wino, ok := c.pass.(*winoConv); ok {
		wino.loads(threads, a)
	} else {
		c.w = take[float32](a, cv.weights())
	}
	return c
}

// weights is how many there are.
func (cv Conv) weights() int { return cv.O * (cv.C / max(1, cv.G)) * cv.KH * cv.KW }

// widener gives w in float32, as it is after rounding to T.
func widener[T driver.B16 | driver.F16, W Elem](w []W) func(dst []float32, from int) {
	if w, ok := any(w).([]float32); ok {
		return func(dst []float32, from int) {
			var some [256]T
			for len(dst) > 0 {
				n := min(len(dst), len(some))
				NarrowRow(some[:n], w[from:])
				WidenRow(dst[:n], some[:n])
				dst, from = dst[n:], from+n
			}
		}
	}
	return func(dst []float32, from int) { WidenRow(dst, same[T](w)[from:][:len(dst)]) }
}

func runHalfConv[T Elem](c *halfConv, threads int, x []T, load func(dst []float32, from int), bias, y []T) {
	if wino, ok := c.pass.(*winoConv); ok {
		wino.load = load
	} else {
		par.Range(threads, len(c.w), halfGrain, func(lo, hi int) { load(c.w[lo:hi], lo) })
	}
	c.pass.pack(threads, c.w)
	if bias != nil {
		widen(c.bias, bias[:len(c.bias)])
	} else {
		c.bias = nil
	}
	for n := 0; n < c.images; n += c.chunk {
		widenAll(threads, c.x, x[n/c.chunk*len(c.x):])
		c.pass.run(c.x, c.bias, c.y)
		narrowAll(threads, y[n/c.chunk*len(c.y):], c.y)
	}
}

// A halfWeights is a gradient of weights over chunks.
type halfWeights struct {
	images, chunk int
	pass          weightPass[float32]
	x, dy, dw     []float32
}

// newHalfWeights is for a gradient of 16 bits or, if half is false, of float32.
func newHalfWeights(cv Conv, threads int, half bool, a *arena) *halfWeights {
	c := &halfWeights{images: cv.N, chunk: cv.chunk(BackwardWeights)}
	cv.N = c.chunk
	c.x, c.dy = take[float32](a, cv.N*cv.C*cv.H*cv.W), take[float32](a, cv.N*cv.O*cv.OH()*cv.OW())
	if half {
		c.dw = take[float32](a, cv.weights())
	}
	c.pass = newWeightPass[float32](cv, threads, c.chunk == c.images, a)
	return c
}

func runHalfWeights[T driver.B16 | driver.F16, W Elem](threads int, cv Conv, x, dy []T, to []W, add bool, a *arena) {
	dw, wide := any(to).([]float32)
	c := newHalfWeights(cv, threads, !wide, a)
	if !wide {
		dw = c.dw
	}
	if !add {
		clear(dw[:cv.weights()])
	}
	for n := 0; n < c.images; n += c.chunk {
		widenAll(threads, c.x, x[n/c.chunk*len(c.x):])
		widenAll(threads, c.dy, dy[n/c.chunk*len(c.dy):])
		c.pass.run(c.x, c.dy, dw, n == 0, n+c.chunk == c.images, add)
	}
	if !wide {
		narrowAll(threads, same[T](to), dw)
	}
}

const halfGrain = 1 << 14

func widenAll[T Elem](threads int, dst []float32, src []T) {
	par.Range(threads, len(dst), halfGrain, func(lo, hi int) { widen(dst[lo:hi], src[lo:hi]) })
}

func narrowAll[T Elem](threads int, dst []T, src []float32) {
	par.Range(threads, len(src), halfGrain, func(lo, hi int) { narrow(dst[lo:hi], src[lo:hi]) })
}
