package kern

import (
	"sync/atomic"

	"github.com/snug-ml/snug/internal/host/par"
)

// A winoWeights is a gradient of weights: Gᵀ·(Σ (Bᵀ·d·B) ⊙ (A·dy·Aᵀ))·G over all tiles. Threads share out channels.
type winoWeights struct {
	winoTiles
	out             int // channels of a group of the result
	panels          int // of these
	vectors, width  int // of a panel
	together        int // panels at a time
	sums            []float32
	frequency       int // distance of one frequency of them from the next
	inParts         int
	outParts        int
	slots           []winoWeightSlot
	off             []int32
	gradients, most int // values of a block of a panel's gradients; channels of a part
}

// A winoWeightSlot has a block's transformed pixels and gradients, and a tile's lines of gradients of which these are made.
type winoWeightSlot struct {
	values, gradients, lines, rows []float32
	pieces                         winoPieces
}

// mostKept is how many sums of tiles of 4x4 there may be from run to run: those of 2x2 are not half as many.
const mostKept = 1 << 20

// newWinoWeights is for one run or, if once is false, for several that add up.
func newWinoWeights(cv Conv, threads int, once bool, a *arena) *winoWeights {
	size := cv.tileSize(BackwardWeights)
	if !once && 36*cv.O*(cv.C/cv.G) > mostKept {
		size = 2
	}
	c := &winoWeights{winoTiles: newWinoTiles(size, cv.N, cv.G, cv.C/cv.G, cv.H, cv.W, cv.OH(), cv.OW(), cv.PH, cv.PW), out: cv.O / cv.G}
	c.cut(2 * fewTiles)
	c.vectors, c.width, c.panels = convKernelsOf[float32]().panels(c.out)
	c.inParts, c.outParts = 1, 1
	if need := (threads + c.groups - 1) / c.groups; c.channels >= 4*need || c.panels < need {
		c.inParts = min(c.channels, need)
	} else {
		c.outParts = need
	}
	c.most = (c.channels + c.inParts - 1) / c.inParts
	c.off = take[int32](a, c.most)
	for i := range c.off {
		c.off[i] = int32(i * c.pitch)
	}
	c.frequency = c.channels*c.width + 16
	c.together = (c.panels + c.outParts - 1) / c.outParts
	if once {
		c.together = max(1, min(c.together, c.mostTransformed()/(c.groups*c.outParts*c.frequencies*c.channels*c.width)))
	}
	c.sums = take[float32](a, c.groups*c.outParts*c.together*c.frequencies*c.frequency)
	c.gradients = c.lines*c.tw*c.width + 16
	c.slots = make([]winoWeightSlot, min(threads, c.groups*c.inParts*c.outParts))
	for i := range c.slots {
		s := &c.slots[i]
		s.values, s.gradients = take[float32](a, c.values(c.most)), take[float32](a, c.frequencies*c.gradients)
		s.lines, s.rows = take[float32](a, c.size*c.size*c.tw*c.width), take[float32](a, c.width*untwisted)
	}
	return c
}

func (c *winoWeights) run(x, dy, dw []float32, first, last, add bool) {
	var next atomic.Int64
	par.For(len(c.slots), len(c.slots), func(slot int) {
		for i := int(next.Add(1)) - 1; i < c.groups*c.inParts*c.outParts; i = int(next.Add(1)) - 1 {
			g, in, out := i/(c.inParts*c.outParts), i/c.outParts%c.inParts, i%c.outParts
			c0, c1 := in*c.channels/c.inParts, (in+1)*c.channels/c.inParts
			end := (out + 1) * c.panels / c.outParts
			for p := out * c.panels / c.outParts; p < end; p += c.together {
				c.part(&c.slots[slot], g, out, c0, c1, p, min(p+c.together, end), x, dy, dw, first, last, add)
			}
		}
	})
}

// panelSums are those of the p-th panel of a part that are there, of a frequency, from a channel on.
func (c *winoWeights) panelSums(g, part, p, f, c0 int) []float32 {
	return c.sums[(((g*c.outParts+part)*c.together+p)*c.frequencies+f)*c.frequency+c0*c.width:]
}

// part is channels c0 to c1 of the image and panels p0 to p1 of a part of the result's.
func (c *winoWeights) part(slot *winoWeightSlot, g, part, c0, c1, p0, p1 int, x, dy, dw []float32, first, last, add bool) {
	kernels, taps, channels := convKernelsOf[float32](), c.taps(), c1-c0
	for p := p0; p < p1 && first; p++ {
		for f := range c.frequencies {
			clear(c.panelSums(g, part, p-p0, f, c0)[:channels*c.width])
		}
	}
	most := kernels.taps[c.vectors]
	parts := (channels + most - 1) / most
	for b := range c.blocks {
		l0, l1 := c.block(b)
		c.transform(kernels.wino, x, g, c0, c1, l0, l1, slot.values, &slot.pieces)
		for p := p0; p < p1; p++ {
			c.transformGradient(taps, slot, g, p, l0, l1, dy)
			for f := range c.frequencies {
				values, gradients := slot.values[f*(channels*c.pitch+16):], slot.gradients[f*c.gradients:]
				sums := c.panelSums(g, part, p-p0, f, c0)
				for i := range parts {
					k0, k1 := i*channels/parts, (i+1)*channels/parts
					kernels.weights(c.vectors, 1, (l1-l0)*c.tw, values, 0, c.off[k0:k1], gradients, sums[k0*c.width:])
				}
			}
		}
	}
	few := len(slot.gradients) / (9 * c.width)
	for p := p0; p < p1 && last; p++ {
		o, row := g*c.out+p*c.width, c.channels*9
		rows := min(c.width, c.out-p*c.width)
		for k := c0; k < c1; k += few {
			n := min(few, c1-k)
			for v := 0; v < c.width; v += 16 {
				taps.weightsBack(n, c.panelSums(g, part, p-p0, 0, k)[v:], c.width, c.frequency, slot.gradients[v:])
			}
			if add {
				untwistAdd(dw[o*row+k*9:], slot.gradients, rows, c.width, row, 9*n, slot.rows)
			} else {
				untwist(dw[o*row+k*9:], slot.gradients, rows, c.width, row, 9*n)
			}
		}
	}
}

// transformGradient brings lines l0 to l1 of a panel of output channels into slot.gradients.
func (c *winoWeights) transformGradient(k *winoTaps, slot *winoWeightSlot, g, p, l0, l1 int, dy []float32) {
	rows := min(c.width, c.out-p*c.width)
	line := c.size * c.tw * c.width
	for l := l0; l < l1; l++ {
		n, y := l/c.th, l%c.th*c.size
		src := dy[(((n*c.groups+g)*c.out+p*c.width)*c.oh+y)*c.ow:]
		for i := range c.size {
			if c.ow%c.size == 0 && y+c.size <= c.oh { // each line follows the one before
				sideBySide(slot.lines, src, rows, c.width, c.oh*c.ow, c.size*c.ow)
				break
			}
			to := slot.lines[i*line:][:line]
			if y+i >= c.oh {
				clear(to)
				continue
			}
			sideBySide(to, src[i*c.ow:], rows, c.width, c.oh*c.ow, c.ow)
			clear(to[c.ow*c.width:])
		}
		for v := 0; v < c.width; v += 16 {
			k.gradient(c.tw, slot.lines[v:], c.width, line, slot.gradients[(l-l0)*c.tw*c.width+v:], c.gradients)
		}
	}
}
