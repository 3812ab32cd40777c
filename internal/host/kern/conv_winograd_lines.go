package kern

// Where lines are short, a vector with the tiles of one would have few lanes. Then the kernels take vectors of the tiles
// of several lines, of one image or of several, from two vectors into which as many lines are loaded.

// A winoLines says how short lines are in vectors.
type winoLines struct {
	pieces int          // lines that a vector has; 0: they are not short
	index  [4][16]int32 // for each column of tiles where it is in two vectors or, of a result, for each of two where its pixels are
	lanes  uint64       // for each column 16 bits of those that exist
}

// A winoPiece is a line's place in a vector: where lane 0 would be, in bytes from the source, and a mask of the line's lanes.
type winoPiece struct {
	at    int64
	lanes uint64
}

// winoPieces are those of 8 lines of each row of tiles, which are up to 6 of the source and 4 of a result. They are of a
// thread: what goes to a kernel of a table would else be a Go object each time.
type winoPieces [6 * 8]winoPiece

// together is how many lines of tiles a vector of tiles has.
func (s *winoLines) together() int { return 2 * s.pieces }

// fit is for lines of w pixels and tw tiles.
func (s *winoLines) fit(w, tw int) bool {
	switch {
	case w > 16 || w < 1:
		return false
	case w > 8:
		s.pieces = 1
	case w > 4:
		s.pieces = 2
	default:
		s.pieces = 4
	}
	if s.together()*tw > 16 {
		s.pieces = 0
	}
	return s.pieces > 0
}

func (s *winoLines) piece(i, w, at int) winoPiece {
	first := i % s.pieces * w
	return winoPiece{4 * int64(at-first), (1<<w - 1) << first}
}

// inputLines are those of the source, with pw zeros before each.
func (t *winoTiles) inputLines() (s winoLines) {
	if !s.fit(t.w, t.tw) {
		return s
	}
	for c := range s.index {
		for i := range s.together() * t.tw {
			if line, col := i/t.tw, 2*(i%t.tw)+c-t.pw; col >= 0 && col < t.w {
				s.index[c][i] = int32(line/s.pieces*16 + line%s.pieces*t.w + col)
				s.lanes |= 1 << (16*c + i)
			}
		}
	}
	return s
}

func (t *winoTiles) outputLines() (s winoLines) {
	if !s.fit(t.ow, t.tw) {
		return s
	}
	for i := range s.together() * t.ow {
		line, col := i/t.ow, i%t.ow
		s.index[line/s.pieces][line%s.pieces*t.ow+col] = int32(col%2*16 + line*t.tw + col/2)
	}
	return s
}

// transformLines is transform for short lines.
func (t *winoTiles) transformLines(k *winoKernels, x []float32, group, c0, c1, l0, l1 int, v []float32, pieces *winoPieces) {
	s := &t.input
	plane, many := t.h*t.w, s.together()
	for l := l0; l < l1; l += many {
		*pieces = winoPieces{}
		image := ((l/t.th*t.groups+group)*t.channels + c0) * plane
		for i := range min(many, l1-l) {
			n, y := (l+i)/t.th-l/t.th, (l+i)%t.th*2-t.ph
			for r := range 4 {
				if y+r >= 0 && y+r < t.h {
					pieces[r*many+i] = s.piece(i, t.w, n*t.groups*t.channels*plane+(y+r)*t.w)
				}
			}
		}
		k.inputLines(s, c1-c0, x[image:], plane, pieces, v[(l-l0)*t.tw:], t.pitch, (c1-c0)*t.pitch+16)
	}
}

// pixelsOfLines makes channels c0 to c1 of short lines of the result, of sums that are `frequency` apart.
func (c *winoConv) pixelsOfLines(k *winoKernels, sums []float32, group, c0, c1, l0, l1 int, bias, y []float32, pieces *winoPieces) {
	s := &c.output
	plane, many := c.oh*c.ow, s.together()
	for l := l0; l < l1; l += many {
		*pieces = winoPieces{}
		image := ((l/c.th*c.groups+group)*c.out + c0) * plane
		for i := range min(many, l1-l) {
			n, line := (l+i)/c.th-l/c.th, (l+i)%c.th*2
			for r := range min(2, c.oh-line) {
				pieces[r*many+i] = s.piece(i, c.ow, n*c.groups*c.out*plane+(line+r)*c.ow)
			}
		}
		k.outputLines(s, c1-c0, sums[(l-l0)*c.tw:], c.pitch, (c1-c0)*c.pitch+16, bias, y[image:], plane, pieces)
	}
}
