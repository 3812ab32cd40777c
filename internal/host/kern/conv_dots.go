package kern

// A convDots is the gradient of weights where a group has hardly any output channels, as in a depthwise convolution:
// vectors are of pixels, not of channels, and their lanes are summed at the end.
type convDots struct {
	tiles  []tile
	vector int
	off    []int32 // for each weight of a channel's part, and some of them again to a multiple of dotWeights
	lanes  int     // of the sums of an output channel
}

const dotWeights = 9 // that the kernel takes at a time

func newConvDots[T floating](from *padding, to image, weights int, off []int32, a *arena) convDots {
	s := sweep[T]{to: to}
	n := (weights + dotWeights - 1) / dotWeights * dotWeights
	vector := convKernelsOf[T]().vector
	d := convDots{s.tilesOf(1, from.w.size, 0, 0, a), vector, take[int32](a, n), n * vector}
	for i := range d.off {
		d.off[i] = off[i%len(off)]
	}
	return d
}

// dotsPart is part for few output channels.
func (c *convWeights[T]) dotsPart(slot *weightSlot[T], i int, x, dy, dw []T, add bool) {
	g, c0, c1, _, _ := c.task(i)
	from, kernel, weights := c.from, convKernelsOf[T]().dots, (c1-c0)*c.taps
	from.image.channels = c1 - c0
	sums, lanes := slot.block, c.dots.lanes
	clear(sums)
	for n := range c.n {
		if c.to.len() == 0 {
			break
		}
		pad(&from, slot.image, x[((n*c.groups+g)*c.channels+c0)*from.h.in*from.w.in:])
		for o := range c.to.channels {
			grad := dy[((n*c.groups+g)*c.to.channels+o)*c.to.size():]
			for k := 0; k < weights; k += dotWeights {
				kernel(slot.image, grad, c.dots.off[k:k+dotWeights], sums[o*lanes+k*c.dots.vector:], c.dots.tiles)
			}
		}
	}
	for o := range c.to.channels {
		d := dw[((g*c.to.channels+o)*c.channels+c0)*c.taps:][:weights]
		for k := range d {
			var s T
			for _, v := range sums[o*lanes+k*c.dots.vector:][:c.dots.vector] {
				s += v
			}
			if add {
				s += d[k]
			}
			d[k] = s
		}
	}
}

// convDotsGo adds, to the vector of sums of each weight, the image's pixels in all tiles times the gradient's.
func convDotsGo[T floating](x, dy []T, off []int32, sums []T, tiles []tile) {
	for k, o := range off {
		var s [goVector]T
		for _, t := range tiles {
			for j, v := range dy[t.dst:][:t.n] {
				s[j] += T(v * x[int(t.src+o)+j])
			}
			for j, v := range dy[t.dst+t.dst2:][:t.n2] {
				s[j] += T(v * x[int(t.src+t.src2+o)+j])
			}
		}
		for j, v := range s {
			sums[k*goVector+j] += v
		}
	}
}
