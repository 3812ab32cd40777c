package kern

import (
	"sync/atomic"

	"github.com/snug-ml/snug/internal/host/par"
)

const (
	fewChannels   = 2         // output channels of a group
	pixelsBlock   = 16 << 10  // gradients of output channels that the weight gradient's kernel takes at a time
	weightsValues = 128 << 10 // sums and what of images belongs to them, at a time: they stay in the second-level cache
	weightsFew    = 288       // of a panel at a time, at least: gradients are brought side by side for each lot
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
	sums           []T     // if there are several runs, for each group and panel of output channels: weights, width channels each
	some           int     // channels at a time
	inner          bool    // each panel goes through all images, and needs no sums beside another's
	slots          []weightSlot[T]
	inParts        int       // that a group's channels are cut in
	outParts       int       // that its panels are cut in
	lines, cols    int       // of a block
	channels       int       // of a group
	dots           *convDots // where output channels are few
}

// A weightSlot has a padded image, or all; gradients side by side; sums as in convWeights, of some channels; and rows of
// weights that are added.
type weightSlot[T floating] struct{ image, block, sums, rows []T }

// newConvWeights is for one run or, if once is false, for several that add up.
func newConvWeights[T floating](cv Conv, threads int, once bool, a *arena) *convWeights[T] {
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
	sums, images := 0, 1
	if c.some = most; once && c.to.channels > fewChannels {
		// values for each channel, the one way and the other
		sums = c.width * c.taps
		inner, outer := sums+c.n*c.from.plane, (c.panels+c.outParts-1)/c.outParts*sums+c.from.plane
		if c.direct {
			inner = sums
		}
		if c.inner = inner <= outer; c.inner {
			images = c.n
		} else {
			sums, inner = outer-c.from.plane, outer
		}
		parts := max(1, min((most*inner+weightsValues-1)/weightsValues, most*c.taps/weightsFew))
		c.some = (most + parts - 1) / parts
		sums *= c.some
	}
	c.from.image.channels = c.some
	c.cols = min(c.to.cols, pixelsBlock/c.width)
	c.lines = min(c.to.lines, pixelsBlock/c.width/max(1, c.cols))
	c.off = take[int32](a, c.some*c.taps)
	if a.buf != nil {
		for k := range c.off {
			c.off[k] = int32(c.from.meets(k/c.taps, k%c.taps/cv.KW, k%cv.KW))
		}
	}
	block := c.together * c.lines * c.cols * c.width
	if c.to.channels <= fewChannels {
		d := newConvDots[T](&c.from, c.to, c.some*c.taps, c.off, a)
		c.dots = &d
		block = c.to.channels * d.lanes
	} else if !once {
		c.sums = take[T](a, c.groups*c.panels*c.width*c.channels*c.taps)
	}
	c.slots = make([]weightSlot[T], min(threads, c.tasks()))
	for i := range c.slots {
		s := &c.slots[i]
		s.block, s.sums, s.rows = take[T](a, block), take[T](a, sums), take[T](a, c.width*untwisted)
		if !c.direct {
			s.image = take[T](a, images*c.from.len())
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
	for at := c0; at < c1; at += c.some {
		end := min(at+c.some, c1)
		if !c.inner {
			c.somePanels(slot, g, at, end, p0, p1, x, dy, dw, first, last, add)
			continue
		}
		for n := 0; n < c.n && !c.direct; n++ {
			c.pad(slot.image[n*c.from.len():], n, g, at, end, x)
		}
		for p := p0; p < p1; p++ {
			sums := c.panelSums(slot, g, 0, at, end)
			clear(sums)
			for n := 0; n < c.n; n += c.together {
				if c.direct {
					c.addImages(slot, n, g, at, end, p, c.image(n, g, at, x), dy, sums)
				} else {
					c.addImages(slot, n, g, at, end, p, slot.image[n*c.from.len():], dy, sums)
				}
			}
			c.write(slot, g, at, end, p, sums, dw, add)
		}
	}
}

// somePanels goes through the images, each with all panels.
func (c *convWeights[T]) somePanels(slot *weightSlot[T], g, c0, c1, p0, p1 int, x, dy, dw []T, first, last, add bool) {
	sums := func(p int) []T { return c.panelSums(slot, g, p-p0, c0, c1) }
	if c.sums != nil {
		sums = func(p int) []T { return c.panelSums(slot, g, p, c0, c1) }
	}
	for p := p0; p < p1 && first; p++ {
		clear(sums(p))
	}
	for n := 0; n < c.n; n += c.together {
		image := slot.image
		if c.direct {
			image = c.image(n, g, c0, x)
		} else {
			c.pad(image, n, g, c0, c1, x)
		}
		for p := p0; p < p1; p++ {
			c.addImages(slot, n, g, c0, c1, p, image, dy, sums(p))
		}
	}
	for p := p0; p < p1 && last; p++ {
		c.write(slot, g, c0, c1, p, sums(p), dw, add)
	}
}

// image is the n-th, of a group, from a channel on.
func (c *convWeights[T]) image(n, g, c0 int, x []T) []T {
	return x[((n*c.groups+g)*c.channels+c0)*c.from.h.in*c.from.w.in:]
}

func (c *convWeights[T]) pad(dst []T, n, g, c0, c1 int, x []T) {
	from := c.from
	from.image.channels = c1 - c0
	pad(&from, dst, c.image(n, g, c0, x))
}

// addImages adds those from the n-th on, as many as are taken together, to the sums of a panel.
func (c *convWeights[T]) addImages(slot *weightSlot[T], n, g, c0, c1, p int, image, dy, sums []T) {
	if c.to.len() == 0 {
		return
	}
	kernels, pitch := convKernelsOf[T](), c.from.w.size
	weights, most := (c1-c0)*c.taps, kernels.taps[c.vectors]
	tiles := (weights + most - 1) / most
	rows := min(c.width, c.to.channels-p*c.width)
	grad := dy[((n*c.groups+g)*c.to.channels+p*c.width)*c.to.size():]
	if c.together > 1 { // one is like a line
		images := min(c.together, c.n-n)
		for i := range images {
			sideBySide(slot.block[i*c.to.cols*c.width:], grad[i*c.groups*c.to.len():], rows, c.width, c.to.cols, c.to.cols)
		}
		for t := range tiles {
			k0, k1 := t*weights/tiles, (t+1)*weights/tiles
			kernels.weights(c.vectors, images, c.to.cols, image, c.groups*c.channels*c.to.cols, c.off[k0:k1], slot.block, sums[k0*c.width:k1*c.width])
		}
		return
	}
	for l := 0; l < c.to.lines; l += c.lines {
		lines := min(c.lines, c.to.lines-l)
		for q := 0; q < c.to.cols; q += c.cols {
			cols := min(c.cols, c.to.cols-q)
			sideBySide(slot.block, grad[l*c.to.cols+q:], rows, c.width, c.to.size(), lines*cols)
			for t := range tiles {
				k0, k1 := t*weights/tiles, (t+1)*weights/tiles
				kernels.weights(c.vectors, lines, cols, image[l*pitch+q:], pitch, c.off[k0:k1], slot.block, sums[k0*c.width:k1*c.width])
			}
		}
	}
}

// write brings the sums of a panel to where they belong.
func (c *convWeights[T]) write(slot *weightSlot[T], g, c0, c1, p int, sums, dw []T, add bool) {
	weights := (c1 - c0) * c.taps
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

// panelSums are those of channels c0 to c1 and the p-th panel.
func (c *convWeights[T]) panelSums(slot *weightSlot[T], g, p, c0, c1 int) []T {
	n := (c1 - c0) * c.taps * c.width
	if c.sums == nil {
		return slot.sums[p*c.some*c.taps*c.width:][:n]
	}
	return c.sums[((g*c.panels+p)*c.channels+c0)*c.taps*c.width:][:n]
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
	if f := convKernelsOf[T]().untwist; f != nil {
		for ; i < rows; i += 16 {
			f(n, src[i:], width, dst[i*distance:], distance, min(16, rows-i), false)
		}
		return
	}
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
	if f := convKernelsOf[T]().untwist; f != nil {
		for i := 0; i < n; i += 16 {
			f(weights, src[i:], width, dst[i*distance:], distance, min(16, n-i), true)
		}
		return
	}
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
