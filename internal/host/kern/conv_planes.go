package kern

import (
	"sync/atomic"

	"github.com/snug-ml/snug/internal/host/par"
)

// A planeKernels has what convolves a channel alone with 3x3 weights, 16 columns of the result at a time, from the image
// as it is: what reaches beyond its margins is left out by masks.
type planeKernels struct {
	forward func(stride int, src []float32, first, pitch, rows int, columns uint64, w, dst []float32, dp, before, after, odd, n int)
	back    func(odd bool, src []float32, first, pitch, rows int, columns uint64, w, dst []float32, dp, skip, lines, n int)
	dots    func(stride int, src []float32, first, pitch, rows int, columns uint64, dy []float32, dp, lines, before, n int, sums []float32)
}

// planes reports whether each channel is alone, and has weights that the kernels know.
func (cv Conv) planes() bool {
	p := cv.PH
	one := Conv{cv.N, cv.G, cv.H, cv.W, cv.G, 3, 3, cv.SH, cv.SH, p, p, 1, 1, cv.G}
	return cv == one && (cv.SH == 1 || cv.SH == 2) && p <= 2 && cv.OH() > 0 && cv.OW() > 0
}

const planeWeights = 10 // 9 and the bias

// A planeConv is a forward pass or a data gradient.
type planeConv struct {
	Conv
	pass    Pass
	threads int
	weights []float32
}

func newPlaneConv(cv Conv, pass Pass, threads int, a *arena) *planeConv {
	return &planeConv{cv, pass, threads, take[float32](a, planeWeights*cv.C)}
}

func (c *planeConv) pack(_ int, w []float32) {
	for i := range c.C {
		d, s := c.weights[i*planeWeights:][:planeWeights], w[i*9:][:9]
		copy(d, s)
		d[9] = 0
		for k := range 9 {
			if c.pass == BackwardData && c.SH == 1 { // a forward pass with weights turned round
				d[k] = s[8-k]
			}
		}
	}
}

func (c *planeConv) run(x, bias, y []float32) {
	for i, b := range bias[:min(c.C, len(bias))] {
		c.weights[i*planeWeights+9] = b
	}
	k := convKernelsOf[float32]().planes
	h, w, oh, ow, p := c.H, c.W, c.OH(), c.OW(), c.PH
	if c.pass == BackwardData && c.SH == 1 {
		h, w, oh, ow, p = oh, ow, h, w, 2-p
	}
	const grain = 1 << 14 // values
	par.Range(c.threads, c.N*c.C, max(1, grain/(h*w)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			weights := c.weights[i%c.C*planeWeights:][:planeWeights]
			switch {
			case c.SH == 1:
				src, dst := x[i*h*w:][:h*w], y[i*oh*ow:][:oh*ow]
				for q := 0; q < ow; q += 16 {
					k.forward(1, src, q-p, w, h, exist(q-p, w, 18), weights, dst[q:], ow, 2-p, p, 0, min(16, ow-q))
				}
			case c.pass == Forward:
				src, dst := x[i*h*w:][:h*w], y[i*oh*ow:][:oh*ow]
				for q := 0; q < ow; q += 16 {
					k.forward(2, src, 2*q-p, w, h, exist(2*q-p, w, 34), weights, dst[q:], ow, max(0, 1-p), oh-(h-1+p)/2, p&1, min(16, ow-q))
				}
			default:
				src, dst := x[i*oh*ow:][:oh*ow], y[i*h*w:][:h*w]
				for q := 0; q < w; q += 32 {
					before := q/2 + (p+1)/2 - 1 // column that the last weight meets
					k.back(p == 1, src, before, ow, oh, exist(before, ow, 17), weights, dst[q:], w, p, h, min(32, w-q))
				}
			}
		}
	})
}

// A planeGradient is a gradient of weights. Threads share out channels, some neighbours at a time: their planes follow
// each other in memory.
type planeGradient struct {
	Conv
	some  int         // channels at a time
	slots [][]float32 // a vector of sums for each weight of these
}

const someChannels = 8

func newPlaneWeights(cv Conv, threads int, a *arena) *planeGradient {
	c := &planeGradient{Conv: cv, some: max(1, min(someChannels, cv.C/(4*threads)))}
	c.slots = make([][]float32, min(threads, (cv.C+c.some-1)/c.some))
	for i := range c.slots {
		c.slots[i] = take[float32](a, c.some*9*16)
	}
	return c
}

func (c *planeGradient) run(x, dy, dw []float32, first, _, add bool) {
	k := convKernelsOf[float32]().planes
	h, w, oh, ow, p, s := c.H, c.W, c.OH(), c.OW(), c.PH, c.SH
	var next atomic.Int64
	par.For(len(c.slots), len(c.slots), func(slot int) {
		sums := c.slots[slot]
		for c0 := (int(next.Add(1)) - 1) * c.some; c0 < c.C; c0 = (int(next.Add(1)) - 1) * c.some {
			c1 := min(c0+c.some, c.C)
			clear(sums)
			for n := range c.N {
				for i := c0; i < c1; i++ {
					at := n*c.C + i
					src, grad, sums := x[at*h*w:][:h*w], dy[at*oh*ow:][:oh*ow], sums[(i-c0)*9*16:]
					for q := 0; q < ow; q += 16 {
						k.dots(s, src, s*q-p, w, h, exist(s*q-p, w, 16*s+2), grad[q:], ow, oh, p, min(16, ow-q), sums)
					}
				}
			}
			for i := c0; i < c1; i++ {
				writeSums(dw[i*9:][:9], sums[(i-c0)*9*16:], first && !add)
			}
		}
	})
}

// writeSums sums the lanes up, and adds what is there unless it is a fresh place.
func writeSums(d, sums []float32, fresh bool) {
	for j := range d {
		var sum float32
		for _, v := range sums[16*j:][:16] {
			sum += v
		}
		if !fresh {
			sum += d[j]
		}
		d[j] = sum
	}
}
