package kern

import (
	"sync/atomic"

	"github.com/snug-ml/snug/internal/host/par"
)

const (
	fewChannels = 2   // output channels of a group
	panelWidth  = 16  // output channels that the weight gradient's kernel takes at a time
	pixelsBlock = 256 // and pixels: their gradients, panelWidth each, stay in the first-level cache
)

// A convWeights computes the gradient of weights. A pixel's gradients of 16 channels are brought side by side, so that
// a kernel can multiply them with the values that 6 weights meet there. Sums run over blocks of pixels, which
// begin at zero, and images in order. Threads share out the weights, not the images: nothing is reduced.
type convWeights[T floating] struct {
	n, groups    int
	from         padding // of one part of a group's channels
	direct       bool    // images are read where they are
	to           image   // one group of the gradient of the result
	taps, panels int
	off          []int32 // for each weight of a channel's part
	sums         []T     // for each group and panel of output channels: weights, 16 channels each
	slots        []weightSlot[T]
	inParts      int       // that a group's channels are cut in
	outParts     int       // that its panels are cut in
	lines, cols  int       // of a block
	channels     int       // of a group
	dots         *convDots // where output channels are few
}

type weightSlot[T floating] struct{ image, block []T }

func newConvWeights[T floating](cv Conv, threads int, a *arena) *convWeights[T] {
	h := forwardAxis(cv.H, cv.OH(), cv.KH, cv.SH, cv.PH, cv.DH)
	w := forwardAxis(cv.W, cv.OW(), cv.KW, cv.SW, cv.PW, cv.DW)
	c := &convWeights[T]{n: cv.N, groups: cv.G, to: image{cv.O / cv.G, cv.OH(), cv.OW()}, taps: cv.KH * cv.KW, channels: cv.C / cv.G}
	c.panels = (c.to.channels + panelWidth - 1) / panelWidth
	if c.taps*c.channels*c.panels*c.groups == 0 {
		return c
	}
	c.inParts, c.outParts = 1, 1
	if need := (threads + c.groups - 1) / c.groups; c.channels >= 4*need || c.panels < need {
		c.inParts = min(c.channels, need)
	} else {
		c.outParts = need
	}
	most := (c.channels + c.inParts - 1) / c.inParts
	c.from, c.direct = newPadding(most, h, w), cv.direct() && c.to.channels > fewChannels
	c.cols = min(c.to.cols, pixelsBlock)
	c.lines = min(c.to.lines, pixelsBlock/max(1, c.cols))
	c.off = take[int32](a, most*c.taps)
	if a.buf != nil {
		for k := range c.off {
			c.off[k] = int32(c.from.meets(k/c.taps, k%c.taps/cv.KW, k%cv.KW))
		}
	}
	block := c.lines * c.cols * panelWidth
	if c.to.channels <= fewChannels {
		d := newConvDots(&c.from, c.to, most*c.taps, c.off, a)
		c.dots = &d
		block = c.to.channels * d.lanes
	} else {
		c.sums = take[T](a, c.groups*c.panels*panelWidth*c.channels*c.taps)
	}
	for range min(threads, c.tasks()) {
		s := weightSlot[T]{block: take[T](a, block)}
		if !c.direct {
			s.image = take[T](a, c.from.len())
		}
		c.slots = append(c.slots, s)
	}
	return c
}

func (c *convWeights[T]) tasks() int { return c.groups * c.inParts * c.outParts }

// task is a group, and some of its channels and panels of output channels.
func (c *convWeights[T]) task(i int) (g, c0, c1, p0, p1 int) {
	g, in, out := i/(c.inParts*c.outParts), i/c.outParts%c.inParts, i%c.outParts
	return g, in * c.channels / c.inParts, (in + 1) * c.channels / c.inParts,
		out * c.panels / c.outParts, (out + 1) * c.panels / c.outParts
}

// ConvBackwardWeights computes dw, the gradient of w.
func ConvBackwardWeights[T floating](threads int, cv Conv, x, dy, dw []T, work []byte) {
	c := newConvWeights[T](cv.pointwise(), cv.threads(threads), newArena(work))
	var next atomic.Int64
	par.For(len(c.slots), len(c.slots), func(slot int) {
		if !c.direct {
			clear(c.slots[slot].image) // the margins
		}
		for i := int(next.Add(1)) - 1; i < c.tasks(); i = int(next.Add(1)) - 1 {
			if c.dots != nil {
				c.dotsPart(&c.slots[slot], i, x, dy, dw)
			} else {
				c.part(&c.slots[slot], i, x, dy, dw)
			}
		}
	})
}

func (c *convWeights[T]) part(slot *weightSlot[T], i int, x, dy, dw []T) {
	g, c0, c1, p0, p1 := c.task(i)
	from, kernel := c.from, pick(weightTileAsm, weightTileGo[T])
	from.image.channels = c1 - c0
	perChannel := from.h.in * from.w.in
	for p := p0; p < p1; p++ {
		clear(c.panelSums(g, p, c0, c1))
	}
	for n := range c.n {
		if c.to.len() == 0 {
			break
		}
		image := x[((n*c.groups+g)*c.channels+c0)*perChannel:]
		if !c.direct {
			pad(&from, slot.image, image)
			image = slot.image
		}
		for p := p0; p < p1; p++ {
			rows := min(panelWidth, c.to.channels-p*panelWidth)
			grad := dy[((n*c.groups+g)*c.to.channels+p*panelWidth)*c.to.lines*c.to.cols:]
			sums := c.panelSums(g, p, c0, c1)
			for l := 0; l < c.to.lines; l += c.lines {
				lines := min(c.lines, c.to.lines-l)
				for q := 0; q < c.to.cols; q += c.cols {
					cols := min(c.cols, c.to.cols-q)
					sideBySide(slot.block, grad[l*c.to.cols+q:], rows, c.to.lines*c.to.cols, lines*cols)
					for k := 0; k < (c1-c0)*c.taps; k += maxRows {
						k1 := min(k+maxRows, (c1-c0)*c.taps)
						kernel(lines, cols, image[l*from.w.size+q:], from.w.size, c.off[k:k1], slot.block, sums[k*panelWidth:k1*panelWidth])
					}
				}
			}
		}
	}
	for p := p0; p < p1; p++ {
		sums := c.panelSums(g, p, c0, c1)
		weights, o := (c1-c0)*c.taps, g*c.to.channels+p*panelWidth
		rows, row := min(panelWidth, c.to.channels-p*panelWidth), c.channels*c.taps
		untwist(dw[o*row+c0*c.taps:], sums, rows, row, weights)
	}
}

func (c *convWeights[T]) panelSums(g, p, c0, c1 int) []T {
	return c.sums[((g*c.panels+p)*c.channels+c0)*c.taps*panelWidth:][:(c1-c0)*c.taps*panelWidth]
}

// sideBySide makes dst[pixel][row] of src[row][pixel]; rows beyond the last are zero.
func sideBySide[T floating](dst, src []T, rows, distance, pixels int) {
	if rows < panelWidth {
		clear(dst[:pixels*panelWidth])
	}
	done := transpose(pixels, src, distance, min(rows, 8), dst, panelWidth)
	if rows > 8 {
		transpose(pixels, src[8*distance:], distance, rows-8, dst[8:], panelWidth)
	}
	for i := range rows {
		s := src[i*distance:][:pixels]
		for q := done; q < pixels; q++ {
			dst[q*panelWidth+i] = s[q]
		}
	}
}

// untwist makes dst[row·distance + i] of src[i][row].
func untwist[T floating](dst, src []T, rows, distance, n int) {
	done, i := 0, 0
	for ; i+8 <= n; i += 8 {
		done = transpose(rows, src[i*panelWidth:], panelWidth, 8, dst[i:], distance)
		for r := done; r < rows; r++ {
			for j := range 8 {
				dst[r*distance+i+j] = src[(i+j)*panelWidth+r]
			}
		}
	}
	for ; i < n; i++ {
		for r := range rows {
			dst[r*distance+i] = src[i*panelWidth+r]
		}
	}
}

// weightTileGo adds Σ_pixels x[pixel + off[k]] · b[pixel][channel] to c[k][channel].
func weightTileGo[T floating](lines, cols int, x []T, pitch int, off []int32, b, c []T) {
	for k, o := range off {
		var s [panelWidth]T
		for l := range lines {
			for q, v := range x[int(o)+l*pitch:][:cols] {
				g := (*[panelWidth]T)(b[(l*cols+q)*panelWidth:])
				for j := range s {
					s[j] += T(v * g[j])
				}
			}
		}
		d := c[k*panelWidth:][:panelWidth]
		for j, v := range s {
			d[j] += v
		}
	}
}
