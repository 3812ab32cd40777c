package kern

const (
	maxRows   = 6        // of a kernel's tile
	convBlock = 320      // weights of a channel at a time, at most: what they meet has to stay in the first-level cache
	l1Share   = 16 << 10 // bytes of that cache for pixels
)

// A sweep computes, at each pixel of to, Σ_k w[i, k] · src[pixel + off[k]] for all channels i of a group.
type sweep[T floating] struct {
	to, in image // the pixels, and the image that they are in
	k      int
	packed []T     // for each group, block of k, panel of channels, and k: one weight a channel
	off    []int32 // where each weight's value is
	from   []int32 // where each weight is, from the first of its channel
	row    int     // distance of the channels' weights
	group  int     // and of the groups'
	tiles  []tile
	at     int // where the first pixel is in the result
	blocks int
	panels int
	groups int
}

// A tile is two vectors of pixels: where they begin in the source and the result, and which lanes exist.
type tile struct{ src, src2, dst, dst2, mask int32 }

func newSweep[T floating](to, in image, groups, k int, a *arena) sweep[T] {
	s := sweep[T]{to: to, in: in, k: k, groups: groups}
	s.blocks = (k + convBlock - 1) / convBlock
	s.panels = (to.channels + maxRows - 1) / maxRows
	if to.len() == 0 {
		return s
	}
	s.packed = take[T](a, groups*to.channels*k)
	s.off = take[int32](a, k)
	s.from = take[int32](a, k)
	s.tiles = take[tile](a, (to.lines*((to.cols+vector-1)/vector)+1)/2)
	return s
}

// setTiles pairs the vectors of all lines.
func (s *sweep[T]) setTiles(pitch int) {
	per := (s.to.cols + vector - 1) / vector
	at := func(v int) (src, dst int32, width int) {
		l, q := v/per, v%per*vector
		return int32(l*pitch + q), int32(l*s.in.cols + q), min(vector, s.to.cols-q)
	}
	for i := range s.tiles {
		src, dst, w1 := at(2 * i)
		src2, dst2, w2 := src, dst, 0
		if 2*i+1 < per*s.to.lines {
			src2, dst2, w2 = at(2*i + 1)
		}
		s.tiles[i] = tile{src, src2 - src, dst, dst2 - dst, int32(w1*(vector+1) + w2)}
	}
}

func (s *sweep[T]) block(b int) (k0, k1 int) { return b * s.k / s.blocks, (b + 1) * s.k / s.blocks }
func (s *sweep[T]) panel(p int) (r0, r1 int) {
	return p * s.to.channels / s.panels, (p + 1) * s.to.channels / s.panels
}

func (s *sweep[T]) pack(w []T) {
	if s.tiles == nil {
		return
	}
	for g := range s.groups {
		for b := range s.blocks {
			k0, k1 := s.block(b)
			for p := range s.panels {
				r0, r1 := s.panel(p)
				dst := s.weights(g, k0, k1, r0, r1)
				for i := range r1 - r0 {
					src := w[g*s.group+(r0+i)*s.row:]
					at := i
					for _, f := range s.from[k0:k1] {
						dst[at] = src[f]
						at += r1 - r0
					}
				}
			}
		}
	}
}

func (s *sweep[T]) weights(g, k0, k1, r0, r1 int) []T {
	m := s.to.channels
	return s.packed[g*m*s.k+m*k0+r0*(k1-k0):][:(r1-r0)*(k1-k0)]
}

// run computes panels p0 to p1 of a group.
func (s *sweep[T]) run(group, p0, p1 int, src, dst []T, add bool) {
	kernel := convKernel[T]()
	size := s.in.lines * s.in.cols
	for b := range s.blocks {
		k0, k1 := s.block(b)
		together := max(1, l1Share/((k1-k0)*32))
		for t := 0; t < len(s.tiles); t += together {
			tiles := s.tiles[t:min(t+together, len(s.tiles))]
			for p := p0; p < p1; p++ {
				r0, r1 := s.panel(p)
				kernel(r1-r0, s.weights(group, k0, k1, r0, r1), src, s.off[k0:k1], dst[r0*size:], size, tiles, add || b > 0)
			}
		}
	}
}
