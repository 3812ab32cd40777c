package kern

// Where lines are short, vectors of their pixels are not full. Then the values that each weight meets are brought side
// by side first, whatever line and image they are of: more copies, fewer products. So are those of 1x1 weights,
// whose channels are in as many places of memory.

// A segment is of pixels that are neighbours in the source: from where to which lane, and how many.
type segment struct{ src, lane, n int32 }

const (
	denseLanes  = 512       // of a block, at most
	denseFew    = 64        // at least
	denseSums   = 64 << 10  // of all channels, if not of few pixels
	denseBlock  = 512       // weights of a channel at a time, at most
	denseValues = 128 << 10 // of these and a block's lanes: they stay in the second-level cache
)

// dense reports whether the pixels of lines are better packed than taken as they are.
func (k *convKernels[T]) dense(channels, lines, cols int) bool {
	vectors := lines * ((cols + k.vector - 1) / k.vector)
	return k.pack != nil && channels*(vectors-lines*cols*27/(25*k.vector)) > 6*vectors
}

// A denseSlot has packed values, sums that do not go where they are, a panel of weights, and what of the source is packed.
type denseSlot[T floating] struct {
	values, sums, panel []T
	segments            []segment
	tiles               []tile
}

// makeDense prepares a sweep for so many images, which are all if no others follow. Then each weight is met once, and
// need not be packed before.
func (s *sweep[T]) makeDense(images int, all bool, a *arena) {
	s.blocks = (s.k + denseBlock - 1) / denseBlock
	most := min(denseLanes, denseValues/s.deepest()/32*32)
	if !all && images > 1 && s.blocks > 1 { // weights are packed besides
		most = min(most, max(denseFew, denseSums/s.to.channels/32*32))
	}
	total := images * s.to.size()
	blocks := (total + most - 1) / most
	s.lanes = ((total+blocks-1)/blocks + 31) / 32 * 32
	s.once = all && blocks == 1
	s.crossing = images > 1 && s.to.size()%s.lanes != 0
	s.packedOff = take[int32](a, s.deepest())
	for k := range s.packedOff {
		s.packedOff[k] = int32(k * s.pitch())
	}
}

// deepest is how many weights of a channel a block has at most.
func (s *sweep[T]) deepest() int { return (s.k + s.blocks - 1) / s.blocks }

func newDenseSlot[T floating](sweeps []sweep[T], parts int, a *arena) (d denseSlot[T]) {
	rows := convKernelsOf[T]().rows
	values, lanes, sums, panel := 0, 0, 0, 0
	for i := range sweeps {
		s := &sweeps[i]
		if s.lanes == 0 {
			continue
		}
		values, lanes = max(values, s.deepest()*s.pitch()), max(lanes, s.lanes)
		switch {
		case s.crossing && s.blocks > 1:
			sums = max(sums, (s.panels+parts-1)/parts*rows*s.lanes)
		case s.crossing:
			sums = max(sums, rows*s.lanes)
		}
		if s.once {
			panel = max(panel, rows*s.deepest())
		}
	}
	if lanes > 0 {
		d = denseSlot[T]{take[T](a, values), take[T](a, sums), take[T](a, panel), take[segment](a, lanes), take[tile](a, lanes/32)}
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
	first, _ := s.panel(p0)
	_, last := s.panel(p1 - 1)
	for q0 := 0; q0 < images*size; q0 += s.lanes {
		q1 := min(q0+s.lanes, images*size)
		image := q0 / size * srcImage
		segments := d.segments[:0]
		for q := q0; q < q1; {
			at, line, col := q/size, q%size/cols, q%cols
			n := min(cols-col, q1-q)
			segments = append(segments, segment{int32(at*srcImage - image + line*pitch + col), int32(q - q0), int32(n)})
			q += n
		}
		tiles := d.tiles[:(q1-q0+31)/32]
		for i := range tiles {
			n := q1 - q0 - 32*i
			tiles[i] = tile{int32(32 * i), 16, int32(32 * i), 16, int16(min(16, n)), int16(max(0, min(16, n-16)))}
		}
		alone := q0/size == (q1-1)/size // one image: sums go where they belong
		gather := func(r0, r1 int, sums []T) {
			s.spread(r0, r1, q0, q1, dstImage, dst, func(dst []T, at int) { copy(sums[at:], dst) })
		}
		scatter := func(r0, r1 int, sums []T) {
			s.spread(r0, r1, q0, q1, dstImage, dst, func(dst []T, at int) { copy(dst, sums[at:]) })
		}
		whole := !alone && s.blocks > 1 // sums of all panels
		if whole && add {
			gather(first, last, d.sums)
		}
		for b := range s.blocks { // its values stay in the cache
			k0, k1 := s.block(b)
			kernels.pack(src[image:], s.off[k0:k1], segments, d.values, s.pitch())
			for p := p0; p < p1; p++ {
				r0, r1 := s.panel(p)
				to, distance := d.sums, s.lanes
				switch {
				case alone:
					to, distance = dst[q0/size*dstImage+r0*size+q0%size:], size
				case whole:
					to = to[(r0-first)*s.lanes:]
				case add:
					gather(r0, r1, to)
				}
				kernels.tiles(r1-r0, s.panelWeights(d, group, k0, k1, r0, r1), d.values, s.packedOff[:k1-k0], to, distance, tiles, add || b > 0)
				if !alone && !whole {
					scatter(r0, r1, to)
				}
			}
		}
		if whole {
			scatter(first, last, d.sums)
		}
	}
}

// panelWeights are packed here, if not before.
func (s *sweep[T]) panelWeights(d *denseSlot[T], group, k0, k1, r0, r1 int) []T {
	if !s.once {
		return s.weights(group, k0, k1, r0, r1)
	}
	packPanel(d.panel, s.w[group*s.group+r0*s.row:], r1-r0, s.row, s.from[k0:k1])
	return d.panel
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
