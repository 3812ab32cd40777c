package kern

import (
	"sync/atomic"

	"github.com/snug-ml/snug/internal/host/par"
)

const (
	fewChannels = 2        // output channels of a group
	pixelsBlock = 16 << 10 // gradients of output channels that the weight gradient's kernel takes at a time
)

// A convWeights computes the gradient of weights. A pixel's gradients of some vectors of channels are brought side by
// side, so that a kernel can multiply them with the values that some weights meet there. Sums run over blocks of pixels, which
// begin at zero, and images in order. Threads share out the weights, not the images: nothing is reduced.
type convWeights[T floating] struct {
	n, groups      int
	swapped        bool    // it is the gradient of the weights' transpose, so that the fewer channels are brought side by side
	together       int     // images whose pixels are in one block
	from           padding // of one part of a group's channels
	direct         bool    // images are read where they are
	to             image   // one group of the gradient of the result
	taps, panels   int
	vectors, width int     // of a panel of output channels
	off            []int32 // for each weight of a channel's part
	sums           []T     // for each group and panel of output channels: weights, width channels each
	slots          []weightSlot[T]
	inParts        int       // that a group's channels are cut in
	outParts       int       // that its panels are cut in
	lines, cols    int       // of a block
	channels       int       // of a group
	dots           *convDots // where output channels are few
}

type weightSlot[T floating] struct{ image, block, rows []T }

func newConvWeights[T floating](cv Conv, threads int, a *arena) *convWeights[T] {
	swapped := cv.alone() && cv.G == 1 && cv.C < cv.O && cv.C > fewChannels
	if swapped {
		cv.C, cv.O = cv.O, cv.C
	}
	h := forwardAxis(cv.H, cv.OH(), cv.KH, cv.SH, cv.PH, cv.DH)
	w := forwardAxis(cv.W, cv.OW(), cv.KW, cv.SW, cv.PW, cv.DW)
	c := &convWeights[T]{n: cv.N, groups: cv.G, swapped: swapped, to: image{cv.O / cv.G, cv.OH(), cv.OW()}, taps: cv.KH * cv.KW, channels: cv.C / cv.G}
	c.vectors, c.width, c.panels = convKernelsOf[T]().panels(c.to.channels)
	if c.taps*c.channels*c.panels*c.groups == 0 {
		return c
	}
	c.inParts, c.outParts = 1, 1
	c.direct = (cv.direct() || cv.alone()) && c.to.channels > fewChannels
	need := (threads + c.groups - 1) / c.groups
	if each := c.direct && c.panels%need == 0; !each && (c.channels >= 4*need || c.panels < need) {
		c.inParts = min(c.channels, need)
	} else {
		c.outParts = need
	}
	most := (c.channels + c.inParts - 1) / c.inParts
	c.from, c.together = newPadding(most, h, w), 1
	if c.direct {
		c.from.plane = c.from.image.size()
		c.together = max(1, min(c.n, pixelsBlock/c.width/max(1, c.to.size())))
	}
	c.cols = min(c.to.cols, pixelsBlock/c.width)
	c.lines = min(c.to.lines, pixelsBlock/c.width/max(1, c.cols))
	c.off = take[int32](a, most*c.taps)
	if a.buf != nil {
		for k := range c.off {
			c.off[k] = int32(c.from.meets(k/c.taps, k%c.taps/cv.KW, k%cv.KW))
		}
	}
	block := c.together * c.lines * c.cols * c.width
	if c.to.channels <= fewChannels {
		d := newConvDots[T](&c.from, c.to, most*c.taps, c.off, a)
		c.dots = &d
		block = c.to.channels * d.lanes
	} else {
		c.sums = take[T](a, c.groups*c.panels*c.width*c.channels*c.taps)
	}
	c.slots = make([]weightSlot[T], min(threads, c.tasks()))
	for i := range c.slots {
		s := &c.slots[i]
		s.block, s.rows = take[T](a, block), take[T](a, c.width*untwisted)
		if !c.direct {
			s.image = take[T](a, c.from.len())
		}
	}
	return c
}

// alone reports whether pixels are on their own, and the few channels that a kernel takes at a time do not fight for the
// same lines of the cache.
func (cv Conv) alone() bool { return cv.isPointwise() && cv.H*cv.W%(4*cacheLines) >= cacheLine }

func (c *convWeights[T]) tasks() int { return c.groups * c.inParts * c.outParts }

// task is a group, and some of its channels and panels of output channels.
func (c *convWeights[T]) task(i int) (g, c0, c1, p0, p1 int) {
	g, in, out := i/(c.inParts*c.outParts), i/c.outParts%c.inParts, i%c.outParts
	return g, in * c.channels / c.inParts, (in + 1) * c.channels / c.inParts,
		out * c.panels / c.outParts, (out + 1) * c.panels / c.outParts
}

func (c *convWeights[T]) run(x, dy, dw []T, first, last, add bool) {
	if c.swapped {
		x, dy = dy, x
	}
	var next atomic.Int64
	par.For(len(c.slots), len(c.slots), func(slot int) {
		if !c.direct {
			clear(c.slots[slot].image) // the margins
		}
		for i := int(next.Add(1)) - 1; i < c.tasks(); i = int(next.Add(1)) - 1 {
			if c.dots != nil {
				c.dotsPart(&c.slots[slot], i, x, dy, dw, !first || add)
			} else {
				c.part(&c.slots[slot], i, x, dy, dw, first, last, add)
			}
		}
	})
}

func (c *convWeights[T]) part(slot *weightSlot[T], i int, x, dy, dw []T, first, last, add bool) {
	g, c0, c1, p0, p1 := c.task(i)
	from, kernels := c.from, convKernelsOf[T]()
	weights, most := (c1-c0)*c.taps, kernels.taps[c.vectors]
	tiles := (weights + most - 1) / most
	from.image.channels = c1 - c0
	perChannel := from.h.in * from.w.in
	for p := p0; p < p1 && first; p++ {
		clear(c.panelSums(g, p, c0, c1))
	}
	for n := 0; n < c.n; n += c.together {
		if c.to.len() == 0 {
			break
		}
		images := min(c.together, c.n-n)
		image := x[((n*c.groups+g)*c.channels+c0)*perChannel:]
		if !c.direct {
			pad(&from, slot.image, image)
			image = slot.image
		}
		for p := p0; p < p1; p++ {
			rows := min(c.width, c.to.channels-p*c.width)
			grad := dy[((n*c.groups+g)*c.to.channels+p*c.width)*c.to.lines*c.to.cols:]
			sums := c.panelSums(g, p, c0, c1)
			if c.together > 1 { // one is like a line
				for i := range images {
					sideBySide(slot.block[i*c.to.cols*c.width:], grad[i*c.groups*c.to.len():], rows, c.width, c.to.cols, c.to.cols)
				}
				for t := range tiles {
					k0, k1 := t*weights/tiles, (t+1)*weights/tiles
					kernels.weights(c.vectors, images, c.to.cols, image, c.groups*c.channels*perChannel, c.off[k0:k1], slot.block, sums[k0*c.width:k1*c.width])
				}
				continue
			}
			for l := 0; l < c.to.lines; l += c.lines {
				lines := min(c.lines, c.to.lines-l)
				for q := 0; q < c.to.cols; q += c.cols {
					cols := min(c.cols, c.to.cols-q)
					sideBySide(slot.block, grad[l*c.to.cols+q:], rows, c.width, c.to.lines*c.to.cols, lines*cols)
					for t := range tiles {
						k0, k1 := t*weights/tiles, (t+1)*weights/tiles
						kernels.weights(c.vectors, lines, cols, image[l*from.w.size+q:], from.w.size, c.off[k0:k1], slot.block, sums[k0*c.width:k1*c.width])
					}
				}
			}
		}
	}
	for p := p0; p < p1 && last; p++ {
		sums := c.panelSums(g, p, c0, c1)
		o, row := g*c.to.channels+p*c.width, c.channels*c.taps
		rows := min(c.width, c.to.channels-p*c.width)
		switch {
		case c.swapped:
			for i := range weights {
				d, s := dw[(c0+i)*c.to.channels+p*c.width:][:rows], sums[i*c.width:]
				if add {
					addTo(d, s)
				} else {
					copy(d, s)
				}
			}
		case add:
			untwistAdd(dw[o*row+c0*c.taps:], sums, rows, c.width, row, weights, slot.rows)
		default:
			untwist(dw[o*row+c0*c.taps:], sums, rows, c.width, row, weights)
		}
	}
}

func (c *convWeights[T]) panelSums(g, p, c0, c1 int) []T {
	return c.sums[((g*c.panels+p)*c.channels+c0)*c.taps*c.width:][:(c1-c0)*c.taps*c.width]
}

// sideBySide makes dst[pixel][row] of src[row][pixel], for width rows; those beyond the last are zero.
func sideBySide[T floating](dst, src []T, rows, width, distance, pixels int) {
	if rows < width {
		clear(dst[:pixels*width])
	}
	done := 0
	for i := 0; i < rows; i += 8 {
		done = transpose(pixels, src[i*distance:], distance, min(8, rows-i), dst[i:], width)
	}
	for i := range rows {
		s := src[i*distance:][:pixels]
		for q := done; q < pixels; q++ {
			dst[q*width+i] = s[q]
		}
	}
}

// untwist makes dst[row·distance + i] of src[i][row].
func untwist[T floating](dst, src []T, rows, width, distance, n int) {
	i := 0
	for ; i+8 <= n; i += 8 {
		done := transpose(rows, src[i*width:], width, 8, dst[i:], distance)
		for r := done; r < rows; r++ {
			for j := range 8 {
				dst[r*distance+i+j] = src[(i+j)*width+r]
			}
		}
	}
	for ; i < n; i++ {
		for r := range rows {
			dst[r*distance+i] = src[i*width+r]
		}
	}
}

const untwisted = 128 // weights of a row at a time, where they are added

// untwistAdd adds to dst what untwist would make of it. rows has room for some of each row.
func untwistAdd[T floating](dst, src []T, n, width, distance, weights int, rows []T) {
	for i := 0; i < weights; i += untwisted {
		m := min(untwisted, weights-i)
		untwist(rows, src[i*width:], n, width, untwisted, m)
		for r := range n {
			addTo(dst[r*distance+i:][:m], rows[r*untwisted:])
		}
	}
}

// addTo is dst += src; src is as long.
func addTo[T floating](dst, src []T) {
	src = src[:len(dst)]
	if dst, ok := any(dst).([]float32); ok {
		AddRow(dst, dst, same[float32](src))
		return
	}
	for i, v := range src {
		dst[i] += v
	}
}

// weightTileGo adds Σ_pixels x[pixel + off[k]] · b[pixel][channel] to c[k][channel].
func weightTileGo[T floating](vectors, lines, cols int, x []T, pitch int, off []int32, b, c []T) {
	width := vectors * goVector
	for k, o := range off {
		d := c[k*width:][:width]
		var sums [2 * goVector]T
		s := sums[:width]
		for l := range lines {
			for q, v := range x[int(o)+l*pitch:][:cols] {
				for j, g := range b[(l*cols+q)*width:][:width] {
					s[j] += T(v * g)
				}
			}
		}
		for j, v := range s {
			d[j] += v
		}
	}
}
