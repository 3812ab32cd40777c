package kern

// Where lines are short, vectors of their pixels are not full. Then the values that each weight meets are brought side
// by side first, whatever line and image they are of: more copies, fewer products. So are those of 1x1 weights,
// whose channels are in as many places of memory.

// A segment is of pixels that are neighbours in the source: from where to which lane, and how many.
type segment struct{ src, lane, n int32 }

const (
	denseLanes  = 512       // of a block, at most
	denseFew    = 64        // at least
	denseValues = 128 << 10 // of a block, if not few: they stay in the second-level cache
)

// dense reports whether the pixels of lines are better packed than taken as they are.
func (k *convKernels[T]) dense(channels, lines, cols int) bool {
	vectors := lines * ((cols + k.vector - 1) / k.vector)
	return k.pack != nil && channels*(vectors-lines*cols*27/(25*k.vector)) > 6*vectors
}

// A denseSlot has packed values, sums that do not go where they are, and what of the source is packed.
type denseSlot[T floating] struct {
	values, sums []T
	segments     []segment
	tiles        []tile
}

// makeDense prepares a sweep for so many images.
func (s *sweep[T]) makeDense(images int, a *arena) {
	most := max(denseFew, min(denseLanes, denseValues/max(1, s.k)/32*32))
	total := images * s.to.size()
	blocks := (total + most - 1) / most
	s.lanes = ((total+blocks-1)/blocks + 31) / 32 * 32
	s.packedOff = take[int32](a, min(s.k, convBlock))
	for k := range s.packedOff {
		s.packedOff[k] = int32(k * s.pitch())
	}
}

func newDenseSlot[T floating](sweeps []sweep[T], a *arena) (d denseSlot[T]) {
	values, lanes := 0, 0
	for i := range sweeps {
		s := &sweeps[i]
		values, lanes = max(values, s.k*s.pitch()), max(lanes, s.lanes)
	}
	if lanes > 0 {
		d = denseSlot[T]{take[T](a, values), take[T](a, lanes*convKernelsOf[T]().rows), take[segment](a, lanes), take[tile](a, lanes/32)}
	}
	return d
}

// runDense is run for packed pixels of some images, srcImage and dstImage apart, with lines pitch apart.
func (s *sweep[T]) runDense(d *denseSlot[T], group, p0, p1, images, pitch, srcImage, dstImage int, src, dst []T, add bool) {
	kernels, size := convKernelsOf[T](), s.to.size()
	cols := s.to.cols
	if pitch == cols {
		cols, pitch = size, size
	}
	for q0 := 0; q0 < images*size; q0 += s.lanes {
		q1 := min(q0+s.lanes, images*size)
		first := q0 / size * srcImage
		segments := d.segments[:0]
		for q := q0; q < q1; {
			image, line, col := q/size, q%size/cols, q%cols
			n := min(cols-col, q1-q)
			segments = append(segments, segment{int32(image*srcImage - first + line*pitch + col), int32(q - q0), int32(n)})
			q += n
		}
		kernels.pack(src[first:], s.off, segments, d.values, s.pitch())
		tiles := d.tiles[:(q1-q0+31)/32]
		for i := range tiles {
			n := q1 - q0 - 32*i
			tiles[i] = tile{int32(32 * i), 16, int32(32 * i), 16, int16(min(16, n)), int16(max(0, min(16, n-16)))}
		}
		alone := q0/size == (q1-1)/size // one image: sums go where they belong
		for p := p0; p < p1; p++ {
			r0, r1 := s.panel(p)
			to, distance := d.sums, s.lanes
			if alone {
				to, distance = dst[q0/size*dstImage+r0*size+q0%size:], size
			}
			if add && !alone {
				s.spread(r0, r1, q0, q1, dstImage, dst, func(dst []T, at int) { copy(d.sums[at:], dst) })
			}
			for b := range s.blocks {
				k0, k1 := s.block(b)
				kernels.tiles(r1-r0, s.weights(group, k0, k1, r0, r1), d.values[k0*s.pitch():], s.packedOff[:k1-k0], to, distance, tiles, add || b > 0)
			}
			if !alone {
				s.spread(r0, r1, q0, q1, dstImage, dst, func(dst []T, at int) { copy(dst, d.sums[at:]) })
			}
		}
	}
}

// spread calls f with the pixels q0 to q1 of each channel and image, and where they are among the sums.
func (s *sweep[T]) spread(r0, r1, q0, q1, dstImage int, dst []T, f func(dst []T, at int)) {
	size := s.to.size()
	for q := q0; q < q1; {
		image, pixel := q/size, q%size
		n := min(size-pixel, q1-q)
		for r := r0; r < r1; r++ {
			f(dst[image*dstImage+r*size+pixel:][:n], (r-r0)*s.lanes+q-q0)
		}
		q += n
	}
}

// pitch is the distance of packed values of a pixel: neighbours are not in the same lines of the cache.
func (s *sweep[T]) pitch() int { return s.lanes + 16 }
