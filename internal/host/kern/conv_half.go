package kern

import "github.com/snug-ml/snug/internal/host/par"

// 16-bit floats are convolved in float32, some images at a time: what is widened stays in the cache. A processor with
// products of bfloat16 (VDPBF16PS) does no more of them than of float32 where it was measured: on Sapphire Rapids half as
// many.

// halfValues is how many values of images and results are float32 at a time, if one image's are not more. Tests change it.
var halfValues = 1 << 20

// chunk is a number of images that divides that of all.
func (cv Conv) chunk() int {
	if cv.N == 0 {
		return 0
	}
	n := max(1, min(cv.N, halfValues/max(1, cv.C*cv.H*cv.W+cv.O*cv.OH()*cv.OW())))
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
	c := &halfConv{images: cv.N, chunk: cv.chunk()}
	cv.N = c.chunk
	x, w, y, bias := cv.N*cv.C*cv.H*cv.W, cv.O*cv.C/max(1, cv.G)*cv.KH*cv.KW, cv.N*cv.O*cv.OH()*cv.OW(), cv.O
	if pass == BackwardData {
		x, y, bias = y, x, 0
	}
	c.x, c.w, c.bias, c.y = take[float32](a, x), take[float32](a, w), take[float32](a, bias), take[float32](a, y)
	c.pass = newConvPass[float32](cv, pass, threads, a)
	return c
}

func runHalfConv[T Elem](c *halfConv, threads int, x, w, bias, y []T) {
	widenAll(threads, c.w, w)
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

func newHalfWeights(cv Conv, threads int, a *arena) *halfWeights {
	c := &halfWeights{images: cv.N, chunk: cv.chunk()}
	cv.N = c.chunk
	c.x, c.dy = take[float32](a, cv.N*cv.C*cv.H*cv.W), take[float32](a, cv.N*cv.O*cv.OH()*cv.OW())
	c.dw = take[float32](a, cv.O*cv.C/max(1, cv.G)*cv.KH*cv.KW)
	c.pass = newWeightPass[float32](cv, threads, c.chunk == c.images, a)
	return c
}

func runHalfWeights[T Elem](c *halfWeights, threads int, x, dy, dw []T) {
	clear(c.dw)
	for n := 0; n < c.images; n += c.chunk {
		widenAll(threads, c.x, x[n/c.chunk*len(c.x):])
		widenAll(threads, c.dy, dy[n/c.chunk*len(c.dy):])
		c.pass.run(c.x, c.dy, c.dw, n == 0, n+c.chunk == c.images)
	}
	narrowAll(threads, dw, c.dw)
}

const halfGrain = 1 << 14

func widenAll[T Elem](threads int, dst []float32, src []T) {
	par.Range(threads, len(dst), halfGrain, func(lo, hi int) { widen(dst[lo:hi], src[lo:hi]) })
}

func narrowAll[T Elem](threads int, dst []T, src []float32) {
	par.Range(threads, len(src), halfGrain, func(lo, hi int) { narrow(dst[lo:hi], src[lo:hi]) })
}
