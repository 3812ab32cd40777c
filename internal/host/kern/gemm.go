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
	gemmBlock = 3 << 16 // elements of a, packed at a time, in the second,
	gemmRoom  = 1 << 17 // or so many where each thread packs its own
	gemmCols  = 1024    // of sums that are not summed in place
	gemmGroup = 8       // panels of which such sums are begun and rounded together: rows of one are too short for that
	gemmSlack = 8       // elements after a panel that packing it may write
	gemmOwn   = 128     // rows, at least, of each thread where each has blocks of its own
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

// A gemm is a product of elements T, computed in F. Threads share it in one of three ways: each has blocks of rows of its
// own, of which it packs what it needs; or, of fewer rows, all are packed together, and each thread takes panels of
// columns, as it is done with the one before; or, of few columns, too, both operands are packed together.
type gemm[T Elem, F floating] struct {
	m, n       int // the other way round if turned
	k, fold    int // the depth in packed values, each of so many elements
	threads    int
	rows, cols int // of a block
	deep       int // that is summed at a time,
	span       int // and that is packed of a block's rows
	rooms      int // threads with blocks of their own
	grid       bool
	group      int  // panels of columns that a thread takes at a time
	slim       bool // sums are of a group, not of a block
	pa         []F  // packed rows, in each room
	pb         []F  // packed columns: a panel for each thread; all of a block for a grid
	sums       []F  // where the result can't be summed in place: a group for each thread, or a block in each room
	turned     []F  // the product of few columns, as one of few rows
	bias       []F

	kern    gemmKernel[F]
	turns   bool
	acc     bool
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
	sums := g.half() && (g.kern.round == nil || acc || g.k == 0 || g.k > g.deep)
	block := gemmBlock
	if g.rooms = 1; g.threads > 1 && m >= g.threads*gemmOwn {
		if g.rooms, block = g.threads, gemmRoom; sums && g.k > g.deep {
			block = gemmBlock / 2
		}
	}
	g.rows, g.cols, g.span = evenly((m+g.rooms-1)/g.rooms, block/max(g.deep, 64), 1), evenly(n, n, panelCols), g.deep
	rowPanels, colPanels := g.panels(g.rows, g.cols)
	if g.rooms < g.threads {
		g.grid = rowPanels > 4 && colPanels < 2*g.threads
	}
	if g.rooms == 1 && !g.grid && (g.threads > 1 || sums) && g.k > g.deep {
		g.span = evenly(g.k, block/g.rows/g.deep*g.deep, g.deep)
	}
	if g.slim = !g.grid && g.span >= g.k; sums && !g.slim {
		g.cols = evenly(n, gemmCols, panelCols)
	}
	if g.group = 1; sums && g.rooms == 1 && g.threads > 1 {
		g.group = min(gemmGroup, max(1, colPanels/(2*g.threads)))
	} else if sums {
		g.group = min(gemmGroup, max(1, colPanels))
	}
	if g.half() || !g.small() {
		g.pa = take[F](a, g.rooms*((g.rows*g.span+g.span/max(g.deep, 1)*rowPanels*gemmSlack+15)&^15))
	}
	if g.grid {
		g.pb = take[F](a, g.cols*g.deep)
	} else {
		g.pb = take[F](a, g.threads*panelCols*g.deep)
	}
	switch {
	case sums && g.slim:
		g.sums = take[F](a, g.threads*g.rows*g.group*g.kern.cols)
	case sums:
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
	g.a, g.b, g.c, g.acc = a, b, c, acc
	if bias != nil && g.half() {
		widen(g.bias, bias)
	} else {
		g.bias = same[F](bias)
	}
	if g.gemv() {
		return
	}
	if g.rooms > 1 {
		shared := *g // what goroutines share is on the heap; small products don't come here
		shared.blocks()
		return
	}
	for i := 0; i < g.m; i += g.rows {
		for j := 0; j < g.n; j += g.cols {
			s := g.block(i, j)
			for s.run(); s.forward(); {
				s.run()
			}
		}
	}
}

// blocks are worked on by a thread each, so that none waits for another but at the end, when who is done helps the others.
func (g *gemm[T, F]) blocks() {
	all := make([]gemmShare[T, F], g.rooms)
	var next atomic.Int64
	take := func() int { return (int(next.Add(1)) - 1) * g.rows }
	par.For(g.rooms, g.rooms, func(room int) {
		own, s := *g, &all[room]
		own.pa = part(g.pa, room, g.rooms)
		if !g.slim {
			own.sums = part(g.sums, room, g.rooms)
		}
		for i := take(); i < g.m; i = take() {
			for j := 0; j < g.n; j += g.cols {
				s.gemmStep = own.block(i, j)
				for more := true; more; more = s.forward() {
					for t := range s.rowPacks() {
						s.pack(t)
					}
					s.next.Store(0)
					s.open.Store(s.last() && j+g.cols >= g.n && int(next.Load())*g.rows >= g.m)
					s.take(room)
				}
			}
		}
		for i := range all {
			if s := &all[(room+i)%g.rooms]; s.open.Load() {
				s.take(room)
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
	i, j, p    int // where it begins
	rows, cols int
	rowPanels  int
	colPanels  int
	rowGroup   int // panels that a goroutine takes at a time from a grid
	a, b       []F // where the operands need no packing
	c          []F // the result, or its sums
	ldc        int
}

// A gemmShare is a step of which several threads take panels of columns.
type gemmShare[T Elem, F floating] struct {
	gemmStep[T, F]
	next atomic.Int64
	open atomic.Bool // to threads that have other rows
}

func (g *gemm[T, F]) panels(rows, cols int) (int, int) {
	return (rows + g.kern.rows - 1) / g.kern.rows, (cols + g.kern.cols - 1) / g.kern.cols
}

// block is the first step of a block.
func (g *gemm[T, F]) block(i, j int) gemmStep[T, F] {
	s := gemmStep[T, F]{gemm: *g, i: i, j: j, rows: min(g.rows, g.m-i), cols: min(g.cols, g.n-j)}
	s.rowPanels, s.colPanels = g.panels(s.rows, s.cols)
	switch {
	case !g.half():
		s.c, s.ldc = same[F](g.c.Data[i*g.c.RS+j:]), g.c.RS
	case !g.slim:
		s.c, s.ldc = g.sums, s.cols
	}
	s.inPlace()
	return s
}

// inPlace says which operands need no packing.
func (s *gemmStep[T, F]) inPlace() {
	s.a, s.b = nil, nil
	if s.half() || s.k == 0 {
		return
	}
	if s.small() || s.n <= gemmFew {
		s.a = same[F](s.gemm.a.Data[s.i*s.gemm.a.RS+s.p*s.gemm.a.CS:])
	}
	if s.gemm.b.CS == 1 && (s.small() || s.rowPanels <= 2) {
		s.b = same[F](s.gemm.b.Data[s.p*s.gemm.b.RS+s.j:])
	}
}

func (s *gemmStep[T, F]) last() bool { return s.p+s.span >= s.k }

// forward makes it the next step, if there is one.
func (s *gemmStep[T, F]) forward() bool {
	if s.last() {
		return false
	}
	s.p += s.span
	s.inPlace()
	return true
}

// addend is what a step adds to in rows r0 to r1 and columns c0 to c1, whose sums c are.
func (s *gemmStep[T, F]) addend(r0, r1, c0, c1 int, c []F, ldc int) (d []F, ldd int) {
	if s.p > 0 {
		return c, ldc
	}
	bias := s.bias
	if bias != nil {
		bias = bias[s.j+c0:][:c1-c0]
	}
	switch {
	case s.k == 0 || s.acc && (bias != nil || s.half()):
		for r := r0; r < r1; r++ {
			s.begin(c[r*ldc:][:c1-c0], bias, r, c0)
		}
		return c, ldc
	case s.acc:
		return c, ldc
	}
	return bias, 0
}

// begin makes a row of sums begin at what is to be added to them.
func (s *gemmStep[T, F]) begin(c, bias []F, r, c0 int) {
	if !s.acc {
		clear(c)
	} else if s.half() {
		widen(c, s.gemm.c.Data[(s.i+r)*s.gemm.c.RS+s.j+c0:][:len(c)])
	}
	for q, v := range bias {
		c[q] += v
	}
}

func (s *gemmStep[T, F]) run() {
	if s.threads == 1 {
		for t := range s.packs() {
			s.pack(t)
		}
		for t := range s.groups() {
			s.columns(t, 0)
		}
		return
	}
	shared := gemmShare[T, F]{gemmStep: *s} // on the heap, where small products don't come
	packers := s.threads
	if s.rows*s.span <= gemmLittle && !s.grid {
		packers = 1
	}
	par.For(packers, shared.packs(), shared.pack)
	if !s.grid {
		par.For(s.threads, s.threads, shared.take)
		return
	}
	shared.rowGroup = s.rowPanels
	for shared.tasks() < 2*s.threads && shared.rowGroup > 4 {
		shared.rowGroup = (shared.rowGroup + 1) / 2
	}
	par.For(s.threads, shared.tasks(), shared.task)
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
	if s.b != nil || !s.grid {
		return 0
	}
	return (s.colPanels + gemmPacks - 1) / gemmPacks
}

func (s *gemmStep[T, F]) pack(t int) {
	if rows := s.rowPacks(); t >= rows {
		for q := (t - rows) * gemmPacks; q < min((t-rows+1)*gemmPacks, s.colPanels); q++ {
			s.packCols(q, s.p, s.packedCols(q))
		}
		return
	}
	for q := t * gemmPacks; q < min((t+1)*gemmPacks, s.rowPanels); q++ {
		s.packRows(q)
	}
}

// rowPanel is the rows of panel q: all panels are of the same height, or one less.
func (s *gemmStep[T, F]) rowPanel(q int) (r0, r1 int) {
	return q * s.rows / s.rowPanels, (q + 1) * s.rows / s.rowPanels
}

func (s *gemmStep[T, F]) colPanel(q int) (c0, c1 int) {
	return q * s.kern.cols, min((q+1)*s.kern.cols, s.cols)
}

// elements are how many are summed at a time of the depth, from p on.
func (s *gemmStep[T, F]) elements(p int) int { return min(s.deep*s.fold, s.depth-p*s.fold) }

func (s *gemmStep[T, F]) packRows(q int) {
	r0, r1 := s.rowPanel(q)
	a := s.gemm.a
	for p := s.p; p < min(s.p+s.span, s.k); p += s.deep {
		at := p * s.fold
		pack(s.packing, s.packedRows(q, p), r1-r0, a.Data[(s.i+r0)*a.RS+at*a.CS:], a.RS, a.CS, r1-r0, s.elements(p))
	}
}

func (s *gemmStep[T, F]) packedRows(q, p int) []F {
	r0, _ := s.rowPanel(q)
	return s.pa[(p-s.p)/s.deep*(s.rows*s.deep+s.rowPanels*gemmSlack)+r0*s.deep+q*gemmSlack:]
}

func (s *gemmStep[T, F]) packedCols(q int) []F { return s.pb[q*s.kern.cols*s.deep:] }

func (s *gemmStep[T, F]) packCols(q, p int, dst []F) {
	c0, c1 := s.colPanel(q)
	b, at := s.gemm.b, p*s.fold
	pack(s.packing, dst, s.kern.cols, b.Data[at*b.RS+(s.j+c0)*b.CS:], b.CS, b.RS, c1-c0, s.elements(p))
}

// take computes groups of panels, of which other threads take some, too, until none is left.
func (s *gemmShare[T, F]) take(thread int) {
	for t := int(s.next.Add(1)) - 1; t < s.groups(); t = int(s.next.Add(1)) - 1 {
		s.columns(t, thread)
	}
}

func (s *gemmStep[T, F]) groups() int { return (s.colPanels + s.group - 1) / s.group }

// columns computes a group of panels, each packed in the cache, over the one before of this thread.
func (s *gemmStep[T, F]) columns(t, thread int) {
	q0, q1 := t*s.group, min((t+1)*s.group, s.colPanels)
	c0, _ := s.colPanel(q0)
	_, c1 := s.colPanel(q1 - 1)
	pb, c, ldc := part(s.pb, thread, s.threads), s.c, s.ldc
	if s.half() && s.slim {
		c, ldc = part(s.sums, thread, s.threads), s.group*s.kern.cols
	} else {
		c = c[c0:]
	}
	d, ldd := s.addend(0, s.rows, c0, c1, c, ldc)
	for q := q0; q < q1; q++ {
		at, _ := s.colPanel(q)
		for p := s.p; p < min(s.p+s.span, s.k); p += s.deep {
			if s.b == nil {
				s.packCols(q, p, pb)
			}
			s.tiles(0, s.rowPanels, q, p, pb, from(c, at-c0), ldc, from(d, at-c0), ldd)
		}
	}
	if s.last() {
		s.round(0, s.rows, c0, c1, c, ldc)
	}
}

// from is x from its i-th element on, nil if it is nil.
func from[F any](x []F, i int) []F {
	if x == nil {
		return nil
	}
	return x[i:]
}

// tasks are those of a grid.
func (s *gemmStep[T, F]) tasks() int {
	return (s.rowPanels + s.rowGroup - 1) / s.rowGroup * s.colPanels
}

func (s *gemmStep[T, F]) task(t int) {
	row, q := t/s.colPanels*s.rowGroup, t%s.colPanels
	row1 := min(row+s.rowGroup, s.rowPanels)
	r0, _ := s.rowPanel(row)
	_, r1 := s.rowPanel(row1 - 1)
	c0, c1 := s.colPanel(q)
	c := from(s.c, c0)
	d, ldd := s.addend(r0, r1, c0, c1, c, s.ldc)
	s.tiles(row, row1, q, s.p, s.packedCols(q), c, s.ldc, d, ldd)
	if s.last() {
		s.round(r0, r1, c0, c1, c, s.ldc)
	}
}

// tiles multiplies panels of rows by one of columns, which is packed in pb unless it needs no packing, and adds d or,
// after the first of the depth, c.
func (s *gemmStep[T, F]) tiles(row0, row1, q, p int, pb []F, c []F, ldc int, d []F, ldd int) {
	deep := min(s.deep, s.k-p)
	c0, c1 := s.colPanel(q)
	if p > s.p {
		d, ldd = c, ldc
	}
	b, bs := pb, s.kern.cols
	if s.b != nil {
		b, bs = s.b[(p-s.p)*s.gemm.b.RS+c0:], s.gemm.b.RS
	}
	for row := row0; row < row1; row++ {
		r0, r1 := s.rowPanel(row)
		a, ars, acs := s.a, s.gemm.a.RS, s.gemm.a.CS
		if a != nil {
			a = a[r0*ars+(p-s.p)*acs:]
		} else {
			a, ars, acs = s.packedRows(row, p), 1, r1-r0
		}
		d := d
		if d != nil {
			d = d[r0*ldd:]
		}
		if p+deep == s.k && s.kern.round != nil {
			to := s.gemm.c
			s.kern.round(r1-r0, c1-c0, deep, a, ars, acs, b, bs, same[driver.B16](to.Data)[(s.i+r0)*to.RS+s.j+c0:], to.RS, d, ldd)
			continue
		}
		s.kern.tile(r1-r0, c1-c0, deep, a, ars, acs, b, bs, c[r0*ldc:], ldc, d, ldd)
	}
}

// round stores results that the kernel has not rounded.
func (s *gemmStep[T, F]) round(r0, r1, c0, c1 int, c []F, ldc int) {
	if s.half() && (s.kern.round == nil || s.k == 0) {
		to := s.gemm.c
		narrowRows(to.Data[(s.i+r0)*to.RS+s.j+c0:], to.RS, c[r0*ldc:], ldc, r1-r0, c1-c0)
	}
}
