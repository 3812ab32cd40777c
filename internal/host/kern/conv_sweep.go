package kern

import "github.com/snug-ml/snug/internal/host/par"

const (
	convBlock = 320      // weights of a channel at a time, at most: what they meet has to stay in the first-level cache
	l1Share   = 16 << 10 // bytes of that cache for pixels
)

// A sweep computes, at each pixel of to, Σ_k w[i, k] · src[pixel + off[k]] for all channels i of a group.
type sweep[T floating] struct {
	to        image // the pixels
	k         int
	w         []T       // all weights, as they are
	packed    []T       // for each group, block of k, panel of channels, and k: one weight a channel
	off       []int32   // where each weight's value is
	from      []int32   // where each weight is, from the first of its channel
	row       int       // distance of the channels' weights
	group     int       // and of the groups'
	tiles     [2][]tile // of as many images as are taken together, and of those that are left over
	at        int       // where the first pixel is in the result
	blocks    int
	panels    int
	groups    int
	dense     bool    // pixels are packed
	once      bool    // each weight is met once
	crossing  bool    // blocks of pixels are of several images
	lanes     int     // of a block of them
	distance  int     // from one image to the next in what it writes
	packedOff []int32 // where each weight's packed values are
}

func newSweep[T floating](to image, groups, k int, a *arena) sweep[T] {
	s := sweep[T]{to: to, k: k, groups: groups}
	s.blocks = (k + convBlock - 1) / convBlock
	rows := convKernelsOf[T]().rows
	s.panels = (to.channels + rows - 1) / rows
	s.off = take[int32](a, k)
	s.from = take[int32](a, k)
	return s
}

// tilesOf pairs the vectors of all lines of some images, which are at distances src and dst.
func (s *sweep[T]) tilesOf(images, pitch, srcImage, dstImage int, a *arena) []tile {
	vector := convKernelsOf[T]().vector
	per := (s.to.cols + vector - 1) / vector
	vectors := images * s.to.lines * per
	tiles := take[tile](a, (vectors+1)/2)
	at := func(v int) (src, dst int32, width int) {
		n, l, q := v/per/s.to.lines, v/per%s.to.lines, v%per*vector
		return int32(n*srcImage + l*pitch + q), int32(n*dstImage + l*s.to.cols + q), min(vector, s.to.cols-q)
	}
	for i := range tiles {
		src, dst, w1 := at(2 * i)
		src2, dst2, w2 := src, dst, 0
		if 2*i+1 < vectors {
			src2, dst2, w2 = at(2*i + 1)
		}
		tiles[i] = tile{src, src2 - src, dst, dst2 - dst, int16(w1), int16(w2)}
	}
	return tiles
}

func (s *sweep[T]) block(b int) (k0, k1 int) { return b * s.k / s.blocks, (b + 1) * s.k / s.blocks }
func (s *sweep[T]) panel(p int) (r0, r1 int) {
	return p * s.to.channels / s.panels, (p + 1) * s.to.channels / s.panels
}

// pack brings the weights in the order in which run reads them.
func (s *sweep[T]) pack(threads int, w []T) {
	if s.w = w; s.once {
		return
	}
	par.For(threads, s.groups*s.panels, func(i int) {
		g, p := i/s.panels, i%s.panels
		r0, r1 := s.panel(p)
		for b := range s.blocks {
			k0, k1 := s.block(b)
			packPanel(s.weights(g, k0, k1, r0, r1), w[g*s.group+r0*s.row:], r1-r0, s.row, s.from[k0:k1])
		}
	})
}

// packPanel makes dst[k·rows + i] of src[i·row + from[k]].
func packPanel[T floating](dst, src []T, rows, row int, from []int32) {
	for k := 0; k < len(from); {
		run := 1
		for k+run < len(from) && from[k+run] == from[k]+int32(run) {
			run++
		}
		kernels := convKernelsOf[T]()
		if kernels.nines != nil && row == 9 {
			n, times, next, taps := nines(from[k:])
			kernels.nines(times, src[from[k]/9*9:], next, taps, dst[k*rows:], rows)
			k += n * times
			continue
		}
		if kernels.gather != nil && run < 16 && row > 1 {
			kernels.gather(len(from)-k, src, from[k:], row, dst[k*rows:], rows)
			return
		}
		// What is written beyond the rows is overwritten with the next weight, which there must be.
		if f := pick[func([]T, int, []T, int, int, int)](copyRowsAsm, nil); f != nil && rows >= 4 && run == 1 && row == 1 && k+2 < len(from) {
			n, distance := 1, int(from[k+1]-from[k])
			for k+n+1 < len(from) && int(from[k+n]-from[k+n-1]) == distance {
				n++
			}
			f(dst[k*rows:], rows, src[from[k]:], distance, rows, n)
			k += n
			continue
		}
		done := 0
		if rows >= 4 {
			// From the last rows to the first, as zeros are written where the next weight's first belong.
			for i := (rows - 1) / 8 * 8; i >= 0; i -= 8 {
				done = transpose(run-1, src[i*row+int(from[k]):], row, min(8, rows-i), dst[k*rows+i:], rows)
			}
		}
		for j := k + done; j < k+run; j++ {
			d, at := dst[j*rows:][:rows], int(from[j])
			for i := range d {
				d[i] = src[at]
				at += row
			}
		}
		k += run
	}
}

// nines is how many places are of the first nine, how often the same of another nine follow, how far apart, and a bit for each.
func nines(from []int32) (n, times, next, taps int) {
	nine := func(k int) (n, taps int) {
		for k+n < len(from) && from[k+n]/9 == from[k]/9 {
			taps |= 1 << (from[k+n] % 9)
			n++
		}
		return n, taps
	}
	n, taps = nine(0)
	times = 1
	for k := n; k < len(from); k += n {
		distance := int(from[k]/9-from[k-n]/9) * 9
		if _, t := nine(k); t != taps || times > 1 && distance != next {
			break
		}
		next = distance
		times++
	}
	return n, times, next, taps
}

func (s *sweep[T]) weights(g, k0, k1, r0, r1 int) []T {
	m := s.to.channels
	return s.packed[g*m*s.k+m*k0+r0*(k1-k0):][:(r1-r0)*(k1-k0)]
}

// run computes panels p0 to p1 of a group.
func (s *sweep[T]) run(group, p0, p1 int, src, dst []T, all []tile, add bool) {
	kernel := convKernelsOf[T]().tiles
	for b := range s.blocks {
		k0, k1 := s.block(b)
		together := max(1, l1Share/((k1-k0)*32))
		for t := 0; t < len(all); t += together {
			tiles := all[t:min(t+together, len(all))]
			for p := p0; p < p1; p++ {
				r0, r1 := s.panel(p)
				kernel(r1-r0, s.weights(group, k0, k1, r0, r1), src, s.off[k0:k1], dst[r0*s.to.size():], s.to.size(), tiles, add || b > 0)
			}
		}
	}
}
