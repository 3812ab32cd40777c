package kern

import (
	"math"
	"sync/atomic"

	"github.com/snug-ml/snug/internal/host/par"
)

// Winograd's minimal filtering F(2x2, 3x3): 16 products a channel for 4 pixels, where the direct way takes 36. A tile of
// 4x4 pixels d becomes Bᵀ·d·B, the weights g become G·g·Gᵀ, and the pixels are Aᵀ·m·A of what the products of both sum up
// to over the channels; with
//
//	Bᵀ = 1  0 -1  0    G = 1   0   0    Aᵀ = 1  1  1  0
//	     0  1  1  0        ½   ½   ½         0  1 -1 -1
//	     0 -1  1  0        ½  -½   ½
//	     0  1  0 -1        0   0   1
//
// The sums are those of 16 products of matrices, done with the same kernels as other convolutions. Lavin and Gray, Fast
// Algorithms for Convolutional Neural Networks, 2015.
//
// F(4x4, 3x3) has 36 for 16; see conv_winograd4.go.
type winoKernels struct {
	input       func(channels int, src []float32, plane, first, line int, rows, columns uint64, dst []float32, pitch, frequency, n int)
	output      func(channels int, src []float32, pitch, frequency int, bias, dst []float32, plane, line, columns int)
	inputLines  func(s *winoLines, channels int, src []float32, plane int, pieces *winoPieces, dst []float32, pitch, frequency int)
	outputLines func(s *winoLines, channels int, src []float32, pitch, frequency int, bias, dst []float32, plane int, pieces *winoPieces)
	winoTaps
	four *wino4Kernels
}

// The transforms of weights and of what meets them, by which tiles of either size differ in nothing but their numbers.
type winoTaps struct {
	weights     func(n int, src []float32, lane, next int, dst []float32, rows, frequency int)
	gradient    func(n int, src []float32, pixel, line int, dst []float32, frequency int)
	weightsBack func(n int, src []float32, width, frequency int, dst []float32)
}

const (
	fewTiles  = 32        // of a block, at least
	winoBlock = 256 << 10 // values and sums of a block, if not of few tiles
	fewRows   = 128       // channels of a part, at least, for which pixels are transformed anew
)

// mostSums is how many there are at a time, so that they leave the second-level cache to what they are made of.
const mostSums = 1 << 17

// winograd reports whether a pass whose result has lines of cols pixels is worth Winograd's way. Tiles may have so many
// percent of these pixels.
func (cv Conv) winograd(lines, cols, most int) bool {
	one := Conv{cv.N, cv.C, cv.H, cv.W, cv.O, 3, 3, 1, 1, cv.PH, cv.PW, 1, 1, cv.G}
	const few = 16
	tiles := (lines + 1) / 2 * ((cols + 1) / 2)
	return cv == one && cv.PH <= 2 && cv.PW <= 2 && cv.C/cv.G >= few && cv.O/cv.G >= few && tiles > 1 && tiles*4*100 <= lines*cols*most
}

// A winoTiles is how a result's pixels are cut in tiles of 2x2 or 4x4, and these in blocks of some lines of tiles.
type winoTiles struct {
	size           int // of a tile, 2 or 4
	frequencies    int
	n, groups      int
	channels, h, w int // of a group of the source
	oh, ow         int // of the result
	ph, pw         int
	th, tw         int // tiles of an image
	lines, blocks  int // lines of tiles of a block
	pitch          int // lanes of a channel's tiles in a block
	input, output  winoLines
	input4         wino4Halves
	output4        wino4Halves
}

func newWinoTiles(size, n, groups, channels, h, w, oh, ow, ph, pw int) winoTiles {
	t := winoTiles{size: size, frequencies: (size + 2) * (size + 2), n: n, groups: groups, channels: channels,
		h: h, w: w, oh: oh, ow: ow, ph: ph, pw: pw, th: (oh + size - 1) / size, tw: (ow + size - 1) / size}
	if size == 4 {
		t.input4, t.output4 = t.inputHalves(), t.outputHalves()
	} else {
		t.input, t.output = t.inputLines(), t.outputLines()
	}
	return t
}

// cut makes blocks of about so many tiles: of as many lines as leave the fewest lanes of a kernel's tiles free.
func (t *winoTiles) cut(want int) {
	all, least := t.n*t.th, math.MaxInt
	lanes := func(lines int) int { return (lines*t.tw + 31) / 32 }
	for l := 1; l <= all && (l == 1 || l*t.tw <= want); l++ {
		if n := all/l*lanes(l) + lanes(all%l); n <= least {
			t.lines, least = l, n
		}
	}
	t.blocks = (all + t.lines - 1) / t.lines
	t.pitch = lanes(t.lines)*32 + 16 // lines of the cache that are neighbours for neighbouring channels
}

// values is how many a block of some channels takes.
func (t *winoTiles) values(channels int) int {
	return t.frequencies*(channels*t.pitch+16) + wino4Rows // of the kernel's own
}

// mostTransformed is how many weights are transformed at a time, if one panel's are not more: with 16 or 36 numbers for 9,
// all of a layer of many channels would take more memory than its images. Pixels are then transformed anew for each part,
// which is little beside the products.
func (t *winoTiles) mostTransformed() int { return (t.size + 2) << 18 }

// taps are the kernels of weights.
func (t *winoTiles) taps() *winoTaps {
	k := convKernelsOf[float32]().wino
	if t.size == 4 {
		return &k.four.winoTaps
	}
	return &k.winoTaps
}

// block is a range of lines of tiles.
func (t *winoTiles) block(b int) (l0, l1 int) { return b * t.lines, min((b+1)*t.lines, t.n*t.th) }

// transform brings lines l0 to l1 of channels c0 to c1 of a group into v.
func (t *winoTiles) transform(k *winoKernels, x []float32, group, c0, c1, l0, l1 int, v []float32, pieces *winoPieces) {
	if t.size == 4 {
		t.transformHalves(k.four, x, group, c0, c1, l0, l1, v, pieces)
		return
	}
	if t.input.pieces > 0 {
		t.transformLines(k, x, group, c0, c1, l0, l1, v, pieces)
		return
	}
	for l := l0; l < l1; l++ {
		n, y := l/t.th, l%t.th*2-t.ph
		rows := exist(y, t.h, 4)
		image := x[((n*t.groups+group)*t.channels+c0)*t.h*t.w:]
		for q := 0; q < t.tw; q += 16 {
			col := 2*q - t.pw
			k.input(c1-c0, image, t.h*t.w, y*t.w+col, t.w, rows, exist(col, t.w, 34),
				v[(l-l0)*t.tw+q:], t.pitch, (c1-c0)*t.pitch+16, min(16, t.tw-q))
		}
	}
}

// exist has a bit for each of n places from at on that is in [0, size).
func exist(at, size, n int) uint64 {
	lo, hi := max(0, -at), min(n, size-at)
	if lo >= hi {
		return 0
	}
	return 1<<hi - 1<<lo
}

// A winoConv is a forward pass or a data gradient.
type winoConv struct {
	winoTiles
	out       int  // channels of a group of the result
	flipped   bool // weights are those of the data gradient
	panels    int
	most      int                           // panels whose weights are transformed at a time
	width     int                           // channels of these
	some      int                           // panels whose sums there are at a time
	frequency int                           // distance of one frequency of their weights from the next
	w         []float32                     // all weights, as they are
	load      func(dst []float32, from int) // or what gives some of them
	loaded    [][]float32                   // for each thread, a panel's
	ready     bool                          // all are transformed
	threads   int
	packed    []float32 // for each group, frequency, panel of channels, and channel of the source: one weight a channel
	off       []int32
	tiles     []tile
	parts     int // that the panels are cut in
	slots     []winoSlot
}

type winoSlot struct {
	values, sums []float32
	pieces       winoPieces
}

func newWinoForward(cv Conv, threads int, a *arena) *winoConv {
	c := &winoConv{winoTiles: newWinoTiles(cv.tileSize(Forward), cv.N, cv.G, cv.C/cv.G, cv.H, cv.W, cv.OH(), cv.OW(), cv.PH, cv.PW), out: cv.O / cv.G}
	c.share(threads, a)
	return c
}

func newWinoBackward(cv Conv, threads int, a *arena) *winoConv {
	c := &winoConv{winoTiles: newWinoTiles(cv.tileSize(BackwardData), cv.N, cv.G, cv.O/cv.G, cv.OH(), cv.OW(), cv.H, cv.W, 2-cv.PH, 2-cv.PW), out: cv.C / cv.G, flipped: true}
	c.share(threads, a)
	return c
}

func (c *winoConv) share(threads int, a *arena) {
	rows := convKernelsOf[float32]().rows
	c.panels = (c.out + rows - 1) / rows
	c.most = max(1, min(c.panels, c.mostTransformed()/(c.groups*c.frequencies*c.channels*rows)))
	c.most = evenly(c.panels, c.most, 1)
	c.width = min(c.out, c.most*rows)
	c.frequency = c.width*c.channels + 16 // or all frequencies would fight for the same lines of the cache
	c.packed = take[float32](a, c.groups*c.frequencies*c.frequency)
	// Enough tiles for the weights to be read seldom, few enough for what is made of them to stay in the second-level cache.
	c.cut(max(fewTiles, winoBlock/(c.frequencies*(c.channels+c.width))-16))
	c.some = evenly(c.most, max(1, mostSums/(c.frequencies*c.pitch*rows)), 1)
	c.off = take[int32](a, c.channels)
	for i := range c.off {
		c.off[i] = int32(i * c.pitch)
	}
	c.tiles = take[tile](a, c.pitch/32)
	for i := range c.tiles {
		c.tiles[i] = tile{int32(32 * i), 16, int32(32 * i), 16, 16, 16}
	}
	tasks := c.blocks * c.groups
	c.parts = 1
	if tasks < threads {
		c.parts = min((threads+tasks-1)/tasks, c.most)
	}
	if tasks < 4*threads && threads > 1 { // or one would wait for another
		c.parts = max(c.parts, min((4*threads+tasks-1)/tasks, c.width/fewRows))
	}
	c.slots = make([]winoSlot, min(threads, tasks*c.parts))
	for i := range c.slots {
		c.slots[i] = c.newSlot(a)
	}
}

func (c *winoConv) newSlot(a *arena) winoSlot {
	rows := convKernelsOf[float32]().rows
	return winoSlot{values: take[float32](a, c.values(c.channels)), sums: take[float32](a, c.values(min(c.width, c.some*rows)))}
}

// beside is another of c's one thread, which shares its weights.
func (c *winoConv) beside(a *arena) *winoConv {
	other := *c
	other.slots = []winoSlot{c.newSlot(a)}
	return &other
}

func (c *winoConv) panel(p int) (r0, r1 int) { return p * c.out / c.panels, (p + 1) * c.out / c.panels }

// weights of a group and frequency, from the r-th channel on of those that are transformed.
func (c *winoConv) weights(g, f, r int) []float32 {
	return c.packed[(g*c.frequencies+f)*c.frequency+r*c.channels:]
}

func (c *winoConv) pack(threads int, w []float32) { c.threads, c.w = threads, w }

// loads takes the room that weights need which load gives.
func (c *winoConv) loads(threads int, a *arena) {
	rows := (c.out + c.panels - 1) / c.panels
	for range min(threads, c.groups*c.most) {
		c.loaded = append(c.loaded, take[float32](a, rows*c.channels*9))
	}
}

// transformWeights of panels p0 to p1.
func (c *winoConv) transformWeights(p0, p1 int) {
	if c.load == nil {
		par.For(c.threads, c.groups*(p1-p0), func(i int) { c.transformPanel(nil, p0, i/(p1-p0), p0+i%(p1-p0)) })
		return
	}
	var next atomic.Int64
	par.For(len(c.loaded), len(c.loaded), func(slot int) {
		for i := int(next.Add(1)) - 1; i < c.groups*(p1-p0); i = int(next.Add(1)) - 1 {
			c.transformPanel(c.loaded[slot], p0, i/(p1-p0), p0+i%(p1-p0))
		}
	})
}

// transformPanel is for the p-th panel of a group, of those from p0 on. Weights are loaded
// into buf.
func (c *winoConv) transformPanel(buf []float32, p0, g, p int) {
	k := c.taps()
	first, _ := c.panel(p0)
	r0, r1 := c.panel(p)
	to, rows := c.weights(g, 0, r0-first), r1-r0
	switch {
	case c.flipped && c.load != nil:
		for i := range c.channels {
			c.load(buf[i*rows*9:][:rows*9], ((g*c.channels+i)*c.out+r0)*9)
		}
		k.weights(c.channels, buf, 9, rows*9, to, rows, c.frequency)
	case c.flipped:
		k.weights(c.channels, c.w[(g*c.channels*c.out+r0)*9:], 9, c.out*9, to, rows, c.frequency)
	case c.load != nil:
		c.load(buf[:rows*c.channels*9], (g*c.out+r0)*c.channels*9)
		k.weights(c.channels, buf, c.channels*9, 9, to, rows, c.frequency)
	default:
		k.weights(c.channels, c.w[(g*c.out+r0)*c.channels*9:], c.channels*9, 9, to, rows, c.frequency)
	}
}

// flip is where the frequency is of weights that are turned round: their first and last lines and columns change places.
func (t *winoTiles) flip(f int) int {
	if t.size == 4 {
		turned := [6]int{5, 3, 4, 1, 2, 0}
		return 6*turned[f/6] + turned[f%6]
	}
	turned := [4]int{3, 1, 2, 0}
	return 4*turned[f/4] + turned[f%4]
}

func (c *winoConv) run(x, bias, y []float32) {
	for p0 := 0; p0 < c.panels; p0 += c.most {
		p1 := min(p0+c.most, c.panels)
		if !c.ready {
			c.transformWeights(p0, p1)
		}
		c.ready = c.most >= c.panels
		var next atomic.Int64
		par.For(len(c.slots), len(c.slots), func(slot int) {
			for i := int(next.Add(1)) - 1; i < c.blocks*c.groups*c.parts; i = int(next.Add(1)) - 1 {
				c.task(&c.slots[slot], i, p0, p1, x, bias, y)
			}
		})
	}
}

// task is a block of tiles and a part of panels p0 to p1.
func (c *winoConv) task(slot *winoSlot, i, p0, p1 int, x, bias, y []float32) {
	part, group, block := i%c.parts, i/c.parts%c.groups, i/c.parts/c.groups
	first, _ := c.panel(p0)
	p0, p1 = p0+part*(p1-p0)/c.parts, p0+(part+1)*(p1-p0)/c.parts
	if p0 == p1 { // there are more parts than panels
		return
	}
	l0, l1 := c.block(block)
	c.transform(convKernelsOf[float32]().wino, x, group, 0, c.channels, l0, l1, slot.values, &slot.pieces)
	for p := p0; p < p1; p += c.some {
		end := min(p+c.some, p1)
		c.products(slot, group, first, p, end, (l1-l0)*c.tw)
		c.pixels(slot, group, p, end, l0, l1, bias, y)
	}
}

// products are those of panels p0 to p1, if the weights that are transformed begin with the first of some channel, and of so
// many tiles.
func (c *winoConv) products(slot *winoSlot, group, first, p0, p1, tiles int) {
	kernels := convKernelsOf[float32]()
	c0, _ := c.panel(p0)
	_, c1 := c.panel(p1 - 1)
	from, to := c.channels*c.pitch+16, (c1-c0)*c.pitch+16
	for f := range c.frequencies { // its values stay in the cache
		at := f
		if c.flipped {
			at = c.flip(f)
		}
		for p := p0; p < p1; p++ {
			r0, r1 := c.panel(p)
			w := c.weights(group, at, r0-first)
			for k := 0; k < c.channels; k += convBlock {
				k1 := min(k+convBlock, c.channels)
				kernels.tiles(r1-r0, w[k*(r1-r0):], slot.values[f*from:], c.off[k:k1], slot.sums[f*to+(r0-c0)*c.pitch:], c.pitch, c.tiles[:(tiles+31)/32], k > 0)
			}
		}
	}
}

// pixels makes those of panels p0 to p1 in lines l0 to l1 of tiles.
func (c *winoConv) pixels(slot *winoSlot, group, p0, p1, l0, l1 int, bias, y []float32) {
	k := convKernelsOf[float32]().wino
	c0, _ := c.panel(p0)
	_, c1 := c.panel(p1 - 1)
	if bias != nil {
		bias = bias[group*c.out+c0:]
	}
	if c.size == 4 {
		c.pixelsOfHalves(k.four, slot.sums, group, c0, c1, l0, l1, bias, y, &slot.pieces)
		return
	}
	if c.output.pieces > 0 {
		c.pixelsOfLines(k, slot.sums, group, c0, c1, l0, l1, bias, y, &slot.pieces)
		return
	}
	for l := l0; l < l1; l++ {
		n, line := l/c.th, l%c.th*2
		dst := y[(((n*c.groups+group)*c.out+c0)*c.oh+line)*c.ow:]
		second := c.ow
		if line+1 == c.oh {
			second = 0
		}
		for q := 0; q < c.tw; q += 16 {
			k.output(c1-c0, slot.sums[(l-l0)*c.tw+q:], c.pitch, (c1-c0)*c.pitch+16, bias, dst[2*q:], c.oh*c.ow, second, min(32, c.ow-2*q))
		}
	}
}
