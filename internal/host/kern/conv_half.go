package kern

import (
	"sync/atomic"

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

// A halfConv is a pass over chunks. Each thread has chunks of its own where they are enough, and the weights' transforms
// fit together: then none waits for another, and what one has widened is in its own cache.
type halfConv struct {
	images, chunk int
	slots         []halfSlot
	w, bias       []float32
}

type halfSlot struct {
	pass convPass[float32]
	x, y []float32
}

func newHalfConv(cv Conv, pass Pass, threads int, a *arena) *halfConv {
	c := &halfConv{images: cv.N, chunk: cv.chunk(pass)}
	slots := 1
	if n := cv.chunkApart(pass, threads); n > 0 {
		c.chunk, slots = n, threads
	}
	cv.N = c.chunk
	x, y, bias := cv.N*cv.C*cv.H*cv.W, cv.N*cv.O*cv.OH()*cv.OW(), cv.O
	if pass == BackwardData {
		x, y, bias = y, x, 0
	}
	c.bias = take[float32](a, bias)
	c.slots = make([]halfSlot, slots)
	for i := range c.slots {
		c.slots[i] = halfSlot{nil, take[float32](a, x), take[float32](a, y)}
	}
	first := newConvPass[float32](cv, pass, threads/slots, a)
	c.slots[0].pass = first
	wino, ok := first.(*winoConv)
	if !ok {
		c.w = take[float32](a, cv.weights())
		return c
	}
	for i := range c.slots[1:] {
		c.slots[i+1].pass = wino.beside(a)
	}
	wino.loads(threads, a)
	return c
}

// chunkApart is the chunk of each of some threads on its own, or 0 where they had better share the work of one.
func (cv Conv) chunkApart(pass Pass, threads int) int {
	if threads == 1 || cv.N == 0 || !convWinograd[float32](cv, pass) {
		return 0
	}
	n := cv.chunk(pass) / threads
	for n > 0 && cv.N%n != 0 {
		n--
	}
	if n == 0 || cv.N/n < 2*threads {
		return 0
	}
	cv.N = n
	if wino := newConvPass[float32](cv, pass, 1, new(arena)).(*winoConv); wino.most < wino.panels || n*wino.th*wino.tw < 2*fewTiles {
		return 0
	}
	return n
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
	if wino, ok := c.slots[0].pass.(*winoConv); ok {
		wino.load = load
	} else {
		par.Range(threads, len(c.w), halfGrain, func(lo, hi int) { load(c.w[lo:hi], lo) })
	}
	c.slots[0].pass.pack(threads, c.w)
	if bias != nil {
		widen(c.bias, bias[:len(c.bias)])
	} else {
		c.bias = nil
	}
	if len(c.slots) == 1 {
		for n := 0; n < c.images; n += c.chunk {
			runHalfSlot(&c.slots[0], threads, n/c.chunk, x, c.bias, y)
		}
		return
	}
	wino := c.slots[0].pass.(*winoConv)
	wino.transformWeights(0, wino.panels)
	for i := range c.slots {
		c.slots[i].pass.(*winoConv).ready = true
	}
	var next atomic.Int64
	par.For(len(c.slots), len(c.slots), func(slot int) {
		for i := int(next.Add(1)) - 1; i*c.chunk < c.images; i = int(next.Add(1)) - 1 {
			runHalfSlot(&c.slots[slot], 1, i, x, c.bias, y)
		}
	})
}

// runHalfSlot is for the i-th chunk.
func runHalfSlot[T Elem](s *halfSlot, threads, i int, x []T, bias []float32, y []T) {
	widenAll(threads, s.x, x[i*len(s.x):])
	s.pass.run(s.x, bias, s.y)
	narrowAll(threads, y[i*len(s.y):], s.y)
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
