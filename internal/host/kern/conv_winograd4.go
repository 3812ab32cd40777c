package kern

// Winograd's F(4x4, 3x3): 36 products for 16 pixels, of tiles of 6x6. The more points the transforms evaluate at, the more
// they round. These are 0, ±a, ±b and ∞ with a = 2/3 and b = 1/a, for which it is two to five times what the direct way does,
// some 1e-6 of the result; see TestWinogradError. (Alam, Anderson, Barabasz and Gregg,
// Winograd Convolution for Deep Neural Networks: Efficient Point Selection, 2022, has pairs of a number and its inverse.)
// Since the inverses of all are among them, weights that are turned round are the same values in other places. With
// s = a² + b², t = 1/2(b² - a²)
//
//	Bᵀ = 1    0   -s   0   1  0    G = 1   0   0    Aᵀ = 1  -b  -b   a   a  0
//	     0  -ab²  -b²  a   1  0        bt  t   at        0  -1   1   1  -1  0
//	     0   ab²  -b² -a   1  0        bt -t   at        0  -a  -a   b   b  0
//	     0  -a²b  -a²  b   1  0        at  t   bt        0  -a²  a²  b² -b² 1
//	     0   a²b  -a² -b   1  0        at -t   bt
//	     0    1    0  -s   0  1        0   0   1
type wino4Kernels struct {
	input  func(s *wino4Halves, channels int, src []float32, plane int, pieces *winoPieces, rows, dst []float32, pitch, frequency int)
	output func(s *wino4Halves, channels int, src []float32, pitch, frequency int, bias, dst []float32, plane int, pieces *winoPieces)
	winoTaps
}

// wino4Rows is how much of its own the kernel of the pixels needs: four vectors of six rows.
const wino4Rows = 6 * 4 * 16

// fewSaved is how many products an image's tiles of 4x4 must save of those of 2x2, for each two channels: there are 20 more
// numbers to each weight.
const fewSaved = 100

// tileSize is that of a pass that goes Winograd's way.
func (cv Conv) tileSize(pass Pass) int {
	lines, cols := cv.OH(), cv.OW()
	if pass == BackwardData {
		lines, cols = cv.H, cv.W
	}
	products := func(size int) int {
		return (lines + size - 1) / size * ((cols + size - 1) / size) * (size + 2) * (size + 2)
	}
	if products(2)-products(4) < fewSaved {
		return 2
	}
	return 4
}

// A wino4Halves says how the 16 tiles of a vector are in four vectors of an image's pixels: half of them in the first two,
// half in the others. These are 32 columns: of several short lines, which begin where the line does, or a part of a long
// one, which begins where its first tile does.
type wino4Halves struct {
	rows, h, w, ph, pw int          // rows that a tile has, of images of h lines of w columns with such margins before them
	lines              int          // of a half; 0: a part of one
	tiles              int          // of a half
	parts              int          // of a line
	pieces             int          // lines, or parts, that a vector has
	index              [5][16]int32 // see the kernels
	lanes              uint64       // for each two columns of tiles 16 bits of those that exist
}

// fit takes lines of tw tiles or, where they are too long, parts of up to `most`.
func (s *wino4Halves) fit(tw, most int) {
	s.pieces, s.parts = 1, 1
	for s.lines = 4; s.lines > 0; s.lines /= 2 {
		if s.w <= 32/s.lines && tw*s.lines <= 8 {
			s.tiles, s.pieces = tw*s.lines, max(1, s.lines/2)
			return
		}
	}
	s.parts = (tw + most - 1) / most
	s.tiles = (tw + s.parts - 1) / s.parts
}

// width is how many columns there are for a line or part.
func (s *wino4Halves) width() int { return 32 / max(1, s.lines) }

// together is how many lines of tiles a vector has.
func (s *wino4Halves) together() int { return max(1, 2*s.lines) }

// fill tells where the lines of tiles from l up to l1 are, or two parts of the first, if an image has th of them and images
// are a distance apart.
func (s *wino4Halves) fill(pieces *winoPieces, th, distance, l, l1, part int) {
	*pieces = winoPieces{}
	for i := range 2 * max(1, s.lines) {
		line, col := l+i, 0
		if s.lines == 0 {
			line, col = l, 4*(part+i)*s.tiles-s.pw
		}
		if line >= l1 || col >= s.w {
			break
		}
		n, y := line/th-l/th, line%th*4-s.ph
		columns := exist(col, s.w, s.width())
		for r := max(0, -y); r < min(s.rows, s.h-y); r++ {
			s.place(pieces, r, i, n*distance+(y+r)*s.w+col, columns)
		}
	}
}

// place is for a row of the i-th line or part: columns that have a bit, of which the first would be at a place.
func (s *wino4Halves) place(pieces *winoPieces, row, i, at int, columns uint64) {
	first := i * s.width()
	for v := first / 16; 16*v < first+s.width(); v++ {
		pieces[(4*row+v)*s.pieces+i%s.pieces] = winoPiece{4 * int64(at-first+16*v), columns << (first % 16) >> (16*v - first/16*16) & 0xffff}
	}
}

func (t *winoTiles) inputHalves() wino4Halves {
	s := wino4Halves{rows: 6, h: t.h, w: t.w, ph: t.ph, pw: t.pw}
	s.fit(t.tw, 7) // the seventh tile ends with the 30th column
	for i := range 16 {
		for two := range 3 {
			line, col := 0, i%8*4+2*two+i/8
			if s.lines > 0 {
				line, col = i%8/t.tw, i%8%t.tw*4+2*two+i/8-t.pw
			}
			if i%8 < s.tiles && col >= 0 && col < s.width() {
				s.index[two][i] = int32(line*s.width() + col)
				s.lanes |= 1 << (16*two + i)
			}
		}
		at := i
		if i >= s.tiles {
			at = 16 + (i-s.tiles)%8
		}
		s.index[3][i], s.index[4][i] = int32(at), int32(at+8)
	}
	return s
}

func (t *winoTiles) outputHalves() wino4Halves {
	s := wino4Halves{rows: 4, h: t.oh, w: t.ow}
	s.fit(t.tw, 8)
	for i := range 16 {
		tile := i / 2 // if each line had as many as columns for them
		if s.lines > 0 {
			tile = tile/(8/s.lines)*t.tw + tile%(8/s.lines)
		}
		for half := range 2 {
			s.index[half][i] = int32((half*s.tiles+tile)%16 + i%2*16)
		}
	}
	return s
}

// transformHalves is transform for tiles of 4x4.
func (t *winoTiles) transformHalves(k *wino4Kernels, x []float32, group, c0, c1, l0, l1 int, v []float32, pieces *winoPieces) {
	s, plane, rows := &t.input4, t.h*t.w, v[len(v)-wino4Rows:]
	for l := l0; l < l1; l += s.together() {
		image := x[((l/t.th*t.groups+group)*t.channels+c0)*plane:]
		for part := 0; part < s.parts; part += 2 {
			s.fill(pieces, t.th, t.groups*t.channels*plane, l, l1, part)
			k.input(s, c1-c0, image, plane, pieces, rows, v[(l-l0)*t.tw+part*s.tiles:], t.pitch, (c1-c0)*t.pitch+16)
		}
	}
}

// pixelsOfHalves is pixelsOfLines for tiles of 4x4.
func (c *winoConv) pixelsOfHalves(k *wino4Kernels, sums []float32, group, c0, c1, l0, l1 int, bias, y []float32, pieces *winoPieces) {
	s, plane := &c.output4, c.oh*c.ow
	for l := l0; l < l1; l += s.together() {
		image := y[((l/c.th*c.groups+group)*c.out+c0)*plane:]
		for part := 0; part < s.parts; part += 2 {
			s.fill(pieces, c.th, c.groups*c.out*plane, l, l1, part)
			k.output(s, c1-c0, sums[(l-l0)*c.tw+part*s.tiles:], c.pitch, (c1-c0)*c.pitch+16, bias, image, plane, pieces)
		}
	}
}
