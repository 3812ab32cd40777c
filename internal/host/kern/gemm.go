package kern

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

//go:generate go -C gen run ./gemm -out ../gemm_amd64.s -stubs ../gemm_stubs_amd64.go -pkg kern

// Elem is what a matrix may hold. The 16-bit types are for storage: sums are of float32, rounded once at the end.
type Elem interface {
	float32 | float64 | driver.B16 | driver.F16
}

// Mat is a matrix whose element (i, j) is Data[i·RS + j·CS].
type Mat[T any] struct {
	Data   []T
	RS, CS int
}

// An element of a product is summed in blocks of the depth, each in order, whatever the path its operands take: so
// its bits depend neither on the number of threads nor on what other rows and columns there are.
const (
	gemmDepth = 512     // a panel of either operand stays in the first two levels of the cache,
	gemmBlock = 3 << 16 // elements of a, packed at a time, in the second
	gemmCols  = 1024    // packed at a time
	gemmSlack = 8       // elements after a panel that packing it may write
	gemmOwn   = 128     // rows, at least, of each thread where each has blocks of its own
	gemmRows  = 1 << 16 // elements of a in one of these, at least
	gemmGroup = 16      // panels each way that one goroutine takes at a time, at most
	panelCols = 32      // of b, at most

	gemmSmall  = 48 * 48 * 48 // multiplications up to which packing a costs more than it brings
	gemmLittle = 1 << 15      // elements of a that one thread packs sooner than two
	gemmFew    = 64           // columns for which packing a costs more than it brings
)

// gemmAlone is up to how many multiplications a second thread costs more than it brings: less in tests.
var gemmAlone = 1 << 20

// Gemm computes c = a·b, for a of m×k and b of k×n, plus c if acc, plus bias, one for each column, if not nil.
// The columns of c are neighbours (CS is 1). At the level avx512bf16, products of bfloat16 are summed in pairs, and
// operands and sums too small for a normal float32 are zero.
func Gemm[T Elem](threads, m, n, k int, a, b, c Mat[T], acc bool, bias []T, work []byte) {
	if m == 0 || n == 0 {
		return
	}
	switch any(a.Data).(type) {
	case []float64:
		g := newGemm[T, float64](m, n, k, threads, acc, newArena(work))
		g.run(a, b, c, acc, bias)
	default:
		g := newGemm[T, float32](m, n, k, threads, acc, newArena(work))
		g.run(a, b, c, acc, bias)
	}
}

// GemmWorkspace is how many bytes of work Gemm needs, whatever the strides.
func GemmWorkspace(t driver.DType, m, n, k, threads int, acc bool) int64 {
	var a arena
	switch t {
	case driver.Float32:
		newGemm[float32, float32](m, n, k, threads, acc, &a)
	case driver.Float64:
		newGemm[float64, float64](m, n, k, threads, acc, &a)
	case driver.BFloat16:
		newGemm[driver.B16, float32](m, n, k, threads, acc, &a)
	case driver.Float16:
		newGemm[driver.F16, float32](m, n, k, threads, acc, &a)
	default:
		panic(fmt.Sprintf("kern: product of %v", t))
	}
	return a.size()
}

// A gemm is a product of elements T, computed in F.
type gemm[T Elem, F floating] struct {
	m, n             int // the other way round if turned
	k, fold          int // the depth in packed values, each of so many elements
	threads          int
	rows, cols, deep int // of a block
	rooms            int // blocks that are worked on at a time, each with a part of these:
	pa, pb           []F // packed panels of a block of either operand
	sums             []F // a block of the result, where it can't be summed in place
	turned           []F // the product of few columns, as one of few rows
	bias             []F

	kern    gemmKernel[F]
	turns   bool
	packing packing
	depth   int // in elements
	a, b, c Mat[T]
}

// half reports whether what is stored isn't what is computed in.
func (*gemm[T, F]) half() bool {
	var t T
	var f F
	return unsafe.Sizeof(t) != unsafe.Sizeof(f)
}

func newGemm[T Elem, F floating](m, n, k, threads int, acc bool, a *arena) gemm[T, F] {
	g := gemm[T, F]{m: m, n: n, depth: k, fold: 1}
	g.kern, g.packing = gemmKernelOf[T, F]()
	if g.packing == packPairs {
		g.fold = 2
	}
	g.k = (k + g.fold - 1) / g.fold
	if m*n == 0 {
		return g
	}
	if n <= gemvRows && !g.half() {
		g.m, g.n = n, m
		g.turned, g.turns = take[F](a, m*n), true
		m, n = n, m
	}
	if g.threads = resolve(threads); m*n*k <= gemmAlone {
		g.threads = 1
	}
	g.deep = evenly(g.k, gemmDepth, 4)
	block, packed := gemmBlock, gemmCols
	if g.rooms = 1; g.threads == 1 {
		packed = panelCols // one panel after the other
	} else if m >= g.threads*gemmOwn {
		block, g.rooms, packed = max(gemmBlock/g.threads, gemmRows), g.threads, panelCols
	}
	g.rows = evenly((m+g.rooms-1)/g.rooms, block/max(g.deep, 64), 1)
	g.cols = evenly(n, gemmCols, panelCols)
	sums := g.half() && (g.kern.round == nil || acc || g.k == 0 || g.k > g.deep)
	if packed == panelCols && !sums {
		g.cols = evenly(n, n, panelCols)
	}
	if g.half() || !g.small() {
		g.pa = take[F](a, g.rooms*((g.rows*g.deep+(g.rows+3)/4*gemmSlack+15)&^15))
	}
	g.pb = take[F](a, g.rooms*min(packed, g.cols)*g.deep)
	if sums {
		g.sums = take[F](a, g.rooms*g.rows*g.cols)
	}
	if g.half() {
		g.bias = take[F](a, n)
	}
	return g
}

func (g *gemm[T, F]) small() bool { return g.m*g.n*g.depth <= gemmSmall }

// evenly is the length, a multiple of unit, of the fewest parts of n that are no longer than most.
func evenly(n, most, unit int) int {
	if n == 0 {
		return 0
	}
	parts := (n + most - 1) / most
	return ((n+parts-1)/parts + unit - 1) / unit * unit
}

func (g *gemm[T, F]) run(a, b, c Mat[T], acc bool, bias []T) {
	if g.turns {
		g.turn(a, b, same[F](c.Data), c.RS, acc, same[F](bias))
		return
	}
	g.multiply(a, b, c, acc, bias)
}

func (g *gemm[T, F]) multiply(a, b, c Mat[T], acc bool, bias []T) {
	g.a, g.b, g.c = a, b, c
	if bias != nil && g.half() {
		widen(g.bias, bias)
	} else {
		g.bias = same[F](bias)
	}
	if g.gemv(acc, bias != nil) {
		return
	}
	if g.rooms > 1 {
		shared := *g // what goroutines share is on the heap; small products don't come here
		shared.blocks(acc, bias != nil)
		return
	}
	for i := 0; i < g.m; i += g.rows {
		for j := 0; j < g.n; j += g.cols {
			g.block(g.threads, i, j, acc, bias != nil)
		}
	}
}

// blocks are worked on by a thread each, so that none waits for another but at the end.
func (g *gemm[T, F]) blocks(acc, bias bool) {
	var next atomic.Int64
	par.For(g.rooms, g.rooms, func(room int) {
		own := *g
		own.pa, own.pb, own.sums = part(g.pa, room, g.rooms), part(g.pb, room, g.rooms), part(g.sums, room, g.rooms)
		for i := (int(next.Add(1)) - 1) * g.rows; i < g.m; i = (int(next.Add(1)) - 1) * g.rows {
			for j := 0; j < g.n; j += g.cols {
				own.block(1, i, j, acc, bias)
			}
		}
	})
}

// part is the i-th of n equal parts of x.
func part[F any](x []F, i, n int) []F { return x[i*len(x)/n : (i+1)*len(x)/n] }

// same is x itself where T is F, else nil.
func same[F, T any](x []T) []F {
	y, _ := any(x).([]F)
	return y
}

// A gemmStep adds the product of some of the depth to a block of the result.
type gemmStep[T Elem, F floating] struct {
	gemm[T, F]
	alone            bool // no other thread has a part of the block
	i, j, p          int  // where it begins
	rows, cols, deep int
	rowPanels        int
	colPanels        int
	rowGroup         int // panels that a goroutine takes at a time
	colGroup         int
	a, b             []F // where the operands need no packing
	c, d             []F // the result; what to add, if anything
	ldc, ldd         int
	last             bool
	rounds           bool // results, not sums
}

func (g *gemm[T, F]) block(threads, i, j int, acc, bias bool) {
	s := gemmStep[T, F]{gemm: *g, alone: threads == 1, i: i, j: j, rows: min(g.rows, g.m-i), cols: min(g.cols, g.n-j)}
	s.c, s.ldc = g.sums, s.cols
	if !g.half() {
		s.c, s.ldc = same[F](g.c.Data[i*g.c.RS+j:]), g.c.RS
	}
	s.addend(acc, bias)
	s.rowPanels = (s.rows + g.kern.rows - 1) / g.kern.rows
	s.colPanels = (s.cols + g.kern.cols - 1) / g.kern.cols
	s.split(threads)
	for ; s.p < g.k; s.p += s.deep {
		s.deep = min(g.deep, g.k-s.p)
		s.last = s.p+s.deep == g.k
		s.rounds = s.last && g.kern.round != nil
		s.run(threads)
		s.d, s.ldd = s.c, s.ldc
	}
	if g.k == 0 && g.half() {
		s.round(0, s.rows, 0, s.cols)
	}
}

// addend is what the first step adds to.
func (s *gemmStep[T, F]) addend(acc, bias bool) {
	switch {
	case s.k == 0 || acc && (bias || s.half()):
		s.begin(acc, bias)
		s.d, s.ldd = s.c, s.ldc
	case acc:
		s.d, s.ldd = s.c, s.ldc
	case bias:
		s.d, s.ldd = s.bias[s.j:], 0
	}
}

// begin makes the sums begin at what is to be added to them.
func (s *gemmStep[T, F]) begin(acc, bias bool) {
	for r := range s.rows {
		c := s.c[r*s.ldc:][:s.cols]
		if !acc {
			clear(c)
		} else if s.half() {
			widen(c, s.gemm.c.Data[(s.i+r)*s.gemm.c.RS+s.j:][:s.cols])
		}
		if bias {
			for q, v := range s.bias[s.j:][:s.cols] {
				c[q] += v
			}
		}
	}
}

// split groups panels: large groups read each packed panel from the cache more often, small ones share out better.
func (s *gemmStep[T, F]) split(threads int) {
	s.rowGroup, s.colGroup = s.rowPanels, min(s.colPanels, gemmGroup) // a panel of columns is packed, meets all rows, is forgotten
	if threads == 1 {
		return
	}
	for s.tasks() < 4*threads && s.colGroup > 1 && s.rowGroup*s.colGroup > 4 {
		s.colGroup = (s.colGroup + 1) / 2
	}
	for s.tasks() < 2*threads && s.rowGroup > 4 { // then all panels are packed before any is met
		s.rowGroup = (s.rowGroup + 1) / 2
	}
}

func (s *gemmStep[T, F]) tasks() int {
	return (s.rowPanels + s.rowGroup - 1) / s.rowGroup * ((s.colPanels + s.colGroup - 1) / s.colGroup)
}

func (s *gemmStep[T, F]) run(threads int) {
	s.a, s.b = nil, nil
	if !s.half() && (s.small() || s.n <= gemmFew) {
		s.a = same[F](s.gemm.a.Data[s.i*s.gemm.a.RS+s.p*s.gemm.a.CS:])
	}
	if !s.half() && s.gemm.b.CS == 1 && (s.small() || s.rowPanels <= 2) {
		s.b = same[F](s.gemm.b.Data[s.p*s.gemm.b.RS+s.j:])
	}
	if threads == 1 {
		for t := range s.packs() {
			s.pack(t)
		}
		for t := range s.tasks() {
			s.task(t)
		}
		return
	}
	shared := *s // what goroutines share is on the heap; small products don't come here
	packers := threads
	if s.rows*s.deep <= gemmLittle && s.colPacks() == 0 {
		packers = 1
	}
	par.For(packers, shared.packs(), shared.pack)
	par.For(threads, shared.tasks(), shared.task)
}

// gemmPacks is how many panels a goroutine packs at a time.
const gemmPacks = 4

func (s *gemmStep[T, F]) packs() int { return s.rowPacks() + s.colPacks() }

func (s *gemmStep[T, F]) rowPacks() int {
	if s.a != nil {
		return 0
	}
	return (s.rowPanels + gemmPacks - 1) / gemmPacks
}

func (s *gemmStep[T, F]) colPacks() int {
	if s.b != nil || s.rowGroup == s.rowPanels {
		return 0
	}
	return (s.colPanels + gemmPacks - 1) / gemmPacks
}

func (s *gemmStep[T, F]) pack(t int) {
	if rows := s.rowPacks(); t >= rows {
		for q := (t - rows) * gemmPacks; q < min((t-rows+1)*gemmPacks, s.colPanels); q++ {
			s.packCols(q, s.packedCols(q))
		}
		return
	}
	for q := t * gemmPacks; q < min((t+1)*gemmPacks, s.rowPanels); q++ {
		s.packRows(q)
	}
}

// elements are how many the step takes of the depth.
func (s *gemmStep[T, F]) elements() int { return min(s.deep*s.fold, s.depth-s.p*s.fold) }

// rowPanel is the rows of panel q: all panels are of the same height, or one less.
func (s *gemmStep[T, F]) rowPanel(q int) (r0, r1 int) {
	return q * s.rows / s.rowPanels, (q + 1) * s.rows / s.rowPanels
}

func (s *gemmStep[T, F]) colPanel(q int) (c0, c1 int) {
	return q * s.kern.cols, min((q+1)*s.kern.cols, s.cols)
}

func (s *gemmStep[T, F]) packRows(q int) {
	r0, r1 := s.rowPanel(q)
	a, p, k := s.gemm.a, s.p*s.fold, s.elements()
	pack(s.packing, s.packedRows(q), r1-r0, a.Data[(s.i+r0)*a.RS+p*a.CS:], a.RS, a.CS, r1-r0, k)
}

func (s *gemmStep[T, F]) packedRows(q int) []F {
	r0, _ := s.rowPanel(q)
	return s.pa[r0*s.deep+q*gemmSlack:]
}

func (s *gemmStep[T, F]) packedCols(q int) []F { return s.pb[q*s.kern.cols*s.deep:] }

func (s *gemmStep[T, F]) packCols(q int, dst []F) {
	c0, c1 := s.colPanel(q)
	b, p, k := s.gemm.b, s.p*s.fold, s.elements()
	pack(s.packing, dst, s.kern.cols, b.Data[p*b.RS+(s.j+c0)*b.CS:], b.CS, b.RS, c1-c0, k)
}

func (s *gemmStep[T, F]) task(t int) {
	groups := (s.colPanels + s.colGroup - 1) / s.colGroup
	row0, col0 := t/groups*s.rowGroup, t%groups*s.colGroup
	row1, col1 := min(row0+s.rowGroup, s.rowPanels), min(col0+s.colGroup, s.colPanels)
	for col := col0; col < col1; col++ {
		c0, c1 := s.colPanel(col)
		b, bs := s.b, s.gemm.b.RS
		switch {
		case b != nil:
			b = b[c0:]
		case s.rowGroup < s.rowPanels:
			b, bs = s.packedCols(col), s.kern.cols
		default: // nobody else needs this panel: it is packed here, in the cache, over the one before
			b, bs = s.pb, s.kern.cols
			if !s.alone {
				b = s.packedCols(col0)
			}
			s.packCols(col, b)
		}
		for row := row0; row < row1; row++ {
			r0, r1 := s.rowPanel(row)
			a, ars, acs := s.a, s.gemm.a.RS, s.gemm.a.CS
			if a != nil {
				a = a[r0*ars:]
			} else {
				a, ars, acs = s.packedRows(row), 1, r1-r0
			}
			d := s.d
			if d != nil {
				d = d[r0*s.ldd+c0:]
			}
			if s.rounds {
				to := s.gemm.c
				s.kern.round(r1-r0, c1-c0, s.deep, a, ars, acs, b, bs, same[driver.B16](to.Data)[(s.i+r0)*to.RS+s.j+c0:], to.RS, d, s.ldd)
				continue
			}
			s.kern.tile(r1-r0, c1-c0, s.deep, a, ars, acs, b, bs, s.c[r0*s.ldc+c0:], s.ldc, d, s.ldd)
		}
	}
	if s.last && s.half() && !s.rounds {
		r0, _ := s.rowPanel(row0)
		_, r1 := s.rowPanel(row1 - 1)
		c0, _ := s.colPanel(col0)
		_, c1 := s.colPanel(col1 - 1)
		s.round(r0, r1, c0, c1)
	}
}

// round stores part of a block of sums.
func (s *gemmStep[T, F]) round(r0, r1, c0, c1 int) {
	for r := r0; r < r1; r++ {
		narrow(s.gemm.c.Data[(s.i+r)*s.gemm.c.RS+s.j+c0:][:c1-c0], s.c[r*s.ldc+c0:][:c1-c0])
	}
}
