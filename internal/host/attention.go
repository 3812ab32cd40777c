package host

import (
	"math"
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	kernel := func(run func(*driver.Args), workspace func(*driver.Args) int64) driver.Kernel {
		return driver.Kernel{Run: run, Workspace: workspace}
	}
	native("attention", kernel(attend[float32], attentionSpace[float32](false)), kernel(attend[float64], attentionSpace[float64](false)))
	native("attention backward",
		kernel(attendBackward[float32], attentionSpace[float32](true)), kernel(attendBackward[float64], attentionSpace[float64](true)))
}

// attentionBlock is how many queries meet all their keys at a time, or keys their queries.
const attentionBlock = kern.AttendLanes

// attention works on blocks of one head's queries. Threads share out heads or, where these are few, their blocks: which
// changes no bit. Operands are used where they are, but for those whose rows have gaps or are of another type, which come
// into the workspace of the thread, and for those of which many rows meet few others: lines that lie a power of two apart
// displace each other in the cache.
type attention[T float32 | float64] struct {
	batch, heads, rows, keys, width int
	causal, back                    bool
	scale                           T
	split                           bool // share out blocks
	slots                           int
	copies                          bool // some operand is not used where it is
}

// newAttention: q, k, v [b h t d]. F: 1 for causal.
func newAttention[T float32 | float64](a *driver.Args, back bool) attention[T] {
	q, k := a.In[0].Shape, a.In[1].Shape
	t := attention[T]{
		batch: q[0], heads: q[1], rows: q[2], keys: k[2], width: q[3], back: back,
		causal: a.F[0] != 0, scale: T(1 / math.Sqrt(float64(max(1, q[3])))),
	}
	threads, tasks := max(1, a.Threads), t.batch*t.heads
	if t.split = tasks < 4*threads && tasks%threads != 0; t.split {
		tasks *= max(blocksOf(t.rows), blocksOf(t.keys))
	}
	t.slots = max(1, min(threads, tasks))
	for _, arrays := range [][]driver.Array{a.In, a.Out} {
		for i := range arrays {
			t.copies = t.copies || !direct[T](&arrays[i])
		}
	}
	return t
}

func blocksOf(n int) int { return (n + attentionBlock - 1) / attentionBlock }

func typeOf[T float32 | float64]() driver.DType {
	var z T
	if unsafe.Sizeof(z) == 8 {
		return driver.Float64
	}
	return driver.Float32
}

// seen is how many keys a query may see.
func (t *attention[T]) seen(query int) int {
	if t.causal {
		return min(query+1, t.keys)
	}
	return t.keys
}

// headSpace is a thread's part of the workspace. Scores and their gradients have a row for each key.
type headSpace[T float32 | float64] struct {
	k, v, dk, dv    []T // [keys width], of a head
	q, o, dy, dq    []T // [block width]
	turned, dturned []T // [width block]: q and dy
	scores, dscores []T // [keys block]
	sums, factors   [attentionBlock]T
}

// space lays out one part over work, and is its length in bytes; work may be nil.
func (t *attention[T]) space(work []byte) (s headSpace[T], bytes int) {
	var z T
	take := func(n int) []T {
		from := bytes
		if bytes += (n*int(unsafe.Sizeof(z)) + 63) &^ 63; work == nil {
			return nil
		}
		return driver.Cast[T](work[from:bytes])[:n]
	}
	block := min(attentionBlock, t.rows) * t.width
	if t.back || t.copies {
		s.k = take(t.keys*t.width + kern.PackSlack)
	}
	if !t.back || t.copies {
		s.v = take(t.keys*t.width + kern.PackSlack)
	}
	if t.copies {
		s.q, s.o = take(block), take(block)
	}
	s.turned, s.scores = take(t.width*attentionBlock+kern.PackSlack), take(t.keys*attentionBlock)
	if t.back {
		s.dturned, s.dscores = take(t.width*attentionBlock+kern.PackSlack), take(t.keys*attentionBlock)
		if t.copies {
			s.dk, s.dv, s.dy, s.dq = take(t.keys*t.width), take(t.keys*t.width), take(block), take(block)
		}
	}
	return s, bytes
}

func attentionSpace[T float32 | float64](back bool) func(*driver.Args) int64 {
	return func(a *driver.Args) int64 {
		t := newAttention[T](a, back)
		_, bytes := t.space(nil)
		return int64(t.slots * bytes)
	}
}

// each runs fn for parts 0 to n-1 of every head of every sample.
func (t *attention[T]) each(n int, work []byte, fn func(sample, head, part int, s *headSpace[T])) {
	spaces := make([]headSpace[T], t.slots)
	for i := range spaces {
		var bytes int
		spaces[i], bytes = t.space(work)
		work = work[bytes:]
	}
	slots(t.slots, t.batch*t.heads*n, func(i, slot int) { fn(i/n/t.heads, i/n%t.heads, i%n, &spaces[slot]) })
}

// columns makes to of a block of m rows, one in each column, and zeros in those that it has more.
func (t *attention[T]) columns(to []T, x kern.Mat[T], m int) {
	if m < attentionBlock {
		clear(to)
	}
	kern.Columns(to, attentionBlock, x, m, t.width)
}

// hide writes with where queries from r0 on do not see keys from k0 on.
func (t *attention[T]) hide(s []T, r0, k0 int, with T) {
	if !t.causal {
		return
	}
	for k := max(k0, r0+1); (k-k0)*attentionBlock < len(s); k++ {
		row := s[(k-k0)*attentionBlock:][:min(k-r0, attentionBlock)]
		for i := range row {
			row[i] = with
		}
	}
}

// headsOf is an operand or a result [b h t d].
type headsOf[T float32 | float64] struct {
	*driver.Array
	direct []T                          // where it is, if its rows have neighbours of this type
	move   func(v []T, off, stride int) // else, from or to it, and so do
	block  func(v []T, off, rows int)   // rows whose values are neighbours; nil: they are not, or of a type without it
}

// direct reports whether an operand's rows are neighbours of this type.
func direct[T float32 | float64](a *driver.Array) bool {
	last := len(a.Shape) - 1
	return a.Type == typeOf[T]() && (a.Strides[last] == 1 || a.Shape[last] <= 1)
}

func reads[T float32 | float64](a *driver.Array) headsOf[T] {
	if direct[T](a) {
		return headsOf[T]{Array: a, direct: driver.Of[T](a)}
	}
	x := headsOf[T]{Array: a, move: load[T](a)}
	switch width, pitch := a.Shape[3], a.Strides[2]; {
	case a.Strides[3] != 1:
	case a.Type == driver.BFloat16:
		x.block = func(v []T, off, rows int) { kern.WidenRows(f32(v), driver.Of[driver.B16](a)[off:], rows, width, pitch) }
	case a.Type == driver.Float16:
		x.block = func(v []T, off, rows int) { kern.WidenRows(f32(v), driver.Of[driver.F16](a)[off:], rows, width, pitch) }
	}
	return x
}

func writes[T float32 | float64](a *driver.Array) headsOf[T] {
	if direct[T](a) {
		return headsOf[T]{Array: a, direct: driver.Of[T](a)}
	}
	x := headsOf[T]{Array: a, move: store[T](a)}
	switch width, pitch := a.Shape[3], a.Strides[2]; {
	case a.Strides[3] != 1:
	case a.Type == driver.BFloat16:
		x.block = func(v []T, off, rows int) {
			kern.NarrowRows(driver.Of[driver.B16](a)[off:], pitch, f32(v), width, rows, width)
		}
	case a.Type == driver.Float16:
		x.block = func(v []T, off, rows int) {
			kern.NarrowRows(driver.Of[driver.F16](a)[off:], pitch, f32(v), width, rows, width)
		}
	}
	return x
}

// rows are rows r0 to r1 of a head: where they are, or in buf.
func (x *headsOf[T]) rows(sample, head, r0, r1 int, buf []T) kern.Mat[T] {
	if x.direct == nil || r0 >= r1 || x.Shape[3] == 0 {
		return matrix(buf, x.Shape[3])
	}
	return kern.Mat[T]{Data: x.direct[sample*x.Strides[0]+head*x.Strides[1]+r0*x.Strides[2]:], RS: x.Strides[2], CS: x.Strides[3]}
}

// read is rows, with what belongs in buf read.
func (x *headsOf[T]) read(sample, head, r0, r1 int, buf []T) kern.Mat[T] {
	if x.direct == nil {
		x.transfer(sample, head, r0, r1, buf)
	}
	return x.rows(sample, head, r0, r1, buf)
}

// copied is rows in buf.
func (x *headsOf[T]) copied(sample, head, r0, r1 int, buf []T) kern.Mat[T] {
	width := x.Shape[3]
	if x.direct == nil {
		x.transfer(sample, head, r0, r1, buf)
	} else if r0 < r1 && width > 0 {
		m := x.rows(sample, head, r0, r1, nil)
		kern.Columns(buf, width, transposed(m), width, r1-r0)
	}
	return matrix(buf, width)
}

// wrote brings rows from buf to where they belong, if they are not there.
func (x *headsOf[T]) wrote(sample, head, r0, r1 int, buf []T) {
	if x.direct == nil {
		x.transfer(sample, head, r0, r1, buf)
	}
}

func (x *headsOf[T]) transfer(sample, head, r0, r1 int, buf []T) {
	width := x.Shape[3]
	off := sample*x.Strides[0] + head*x.Strides[1]
	if x.block != nil {
		if r0 < r1 && width > 0 {
			x.block(buf, off+r0*x.Strides[2], r1-r0)
		}
		return
	}
	for r := r0; r < r1 && width > 0; r++ {
		x.move(buf[(r-r0)*width:][:width], off+r*x.Strides[2], x.Strides[3])
	}
}

// attend: q, k, v; writes o [b h t d] and log Σ exp of each row of scores [b h t].
func attend[T float32 | float64](a *driver.Args) {
	t := forward[T]{attention: newAttention[T](a, false), sums: driver.Of[T](&a.Out[1])}
	t.q, t.k, t.v, t.o = reads[T](&a.In[0]), reads[T](&a.In[1]), reads[T](&a.In[2]), writes[T](&a.Out[0])
	parts, length := 1, t.rows
	if t.split {
		parts, length = blocksOf(t.rows), attentionBlock
	}
	t.each(parts, a.Work, func(sample, head, part int, s *headSpace[T]) {
		t.part(sample, head, part*length, min((part+1)*length, t.rows), s)
	})
}

type forward[T float32 | float64] struct {
	attention[T]
	q, k, v, o headsOf[T]
	sums       []T
}

// part is what queries first to end find.
func (t *forward[T]) part(sample, head, first, end int, s *headSpace[T]) {
	if first >= end {
		return
	}
	k, v := t.k.read(sample, head, 0, t.seen(end-1), s.k), t.v.copied(sample, head, 0, t.seen(end-1), s.v)
	for r0 := first; r0 < end; r0 += attentionBlock {
		r1 := min(r0+attentionBlock, end)
		m, n := r1-r0, t.seen(r1-1)
		p := matrix(s.scores[:n*attentionBlock], attentionBlock)
		t.columns(s.turned, t.q.read(sample, head, r0, r1, s.q), m)
		kern.Product(n, attentionBlock, t.width, k, matrix(s.turned, attentionBlock), p, false)
		t.hide(p.Data, r0, 0, T(math.Inf(-1)))
		kern.AttendColumns(p.Data, t.scale, &s.sums, &s.factors)
		copy(t.sums[(sample*t.heads+head)*t.rows+r0:][:m], s.sums[:])
		o := t.o.rows(sample, head, r0, r1, s.o)
		kern.Product(m, t.width, n, transposed(p), v, o, false)
		kern.ScaleRows(o, t.width, s.factors[:m])
		t.o.wrote(sample, head, r0, r1, s.o)
	}
}

// attendBackward: q, k, v, o, log Σ exp, dy; writes dq, dk, dv. With probabilities p made
// again, dv = pᵀ·dy, dp = dy·vᵀ, ds = p·(dp − Σ dy·o)/√d, dq = ds·k and dk = dsᵀ·q. Where blocks are shared out,
// those of queries give dq and those of keys dk and dv, with p and dp made twice.
func attendBackward[T float32 | float64](a *driver.Args) {
	t := backward[T]{attention: newAttention[T](a, true), sums: values[T](&a.In[4])}
	t.q, t.k, t.v, t.o, t.dy = reads[T](&a.In[0]), reads[T](&a.In[1]), reads[T](&a.In[2]), reads[T](&a.In[3]), reads[T](&a.In[5])
	t.dq, t.dk, t.dv = writes[T](&a.Out[0]), writes[T](&a.Out[1]), writes[T](&a.Out[2])
	if !t.split {
		t.each(1, a.Work, func(sample, head, _ int, s *headSpace[T]) {
			t.part(sample, head, 0, t.rows, 0, t.keys, true, true, s)
		})
		return
	}
	t.each(blocksOf(t.rows), a.Work, func(sample, head, part int, s *headSpace[T]) {
		r0 := part * attentionBlock
		t.part(sample, head, r0, min(r0+attentionBlock, t.rows), 0, t.keys, true, false, s)
	})
	t.each(blocksOf(t.keys), a.Work, func(sample, head, part int, s *headSpace[T]) {
		k0 := part * attentionBlock
		t.part(sample, head, 0, t.rows, k0, min(k0+attentionBlock, t.keys), false, true, s)
	})
}

type backward[T float32 | float64] struct {
	attention[T]
	q, k, v, o, dy, dq, dk, dv headsOf[T]
	sums                       []T
}

// part is what queries first to end and keys k0 to k1 give each other: queries dq, from all keys, and keys dk and dv, from
// all queries.
func (t *backward[T]) part(sample, head, first, end, k0, k1 int, queries, keys bool, s *headSpace[T]) {
	w := t.width
	k, v := t.k.copied(sample, head, k0, k1, s.k), t.v.read(sample, head, k0, k1, s.v)
	dk, dv := t.dk.rows(sample, head, k0, k1, s.dk), t.dv.rows(sample, head, k0, k1, s.dv)
	seen := 0 // keys that have a gradient
	for r0 := first; r0 < end; r0 += attentionBlock {
		r1 := min(r0+attentionBlock, end)
		m, n := r1-r0, min(k1, t.seen(r1-1))-k0
		if n <= 0 {
			continue
		}
		q, o, dy := t.q.read(sample, head, r0, r1, s.q), t.o.read(sample, head, r0, r1, s.o), t.dy.read(sample, head, r0, r1, s.dy)
		t.columns(s.turned, q, m)
		t.columns(s.dturned, dy, m)
		p, ds := matrix(s.scores[:n*attentionBlock], attentionBlock), matrix(s.dscores[:n*attentionBlock], attentionBlock)
		kern.Product(n, attentionBlock, w, k, matrix(s.turned, attentionBlock), p, false)
		kern.Product(n, attentionBlock, w, v, matrix(s.dturned, attentionBlock), ds, false)
		copy(s.sums[:m], t.sums[(sample*t.heads+head)*t.rows+r0:])
		kern.DotRows(s.factors[:m], dy, o, w)
		kern.AttendBackColumns(p.Data, ds.Data, t.scale, &s.sums, &s.factors)
		t.hide(p.Data, r0, k0, 0)
		t.hide(ds.Data, r0, k0, 0)
		if keys {
			kern.Product(seen, w, m, p, dy, dv, true)
			kern.Product(seen, w, m, ds, q, dk, true)
			kern.Product(n-seen, w, m, from(p, seen), dy, from(dv, seen), false)
			kern.Product(n-seen, w, m, from(ds, seen), q, from(dk, seen), false)
			seen = n
		}
		if queries {
			kern.Product(m, w, n, transposed(ds), k, t.dq.rows(sample, head, r0, r1, s.dq), false)
			t.dq.wrote(sample, head, r0, r1, s.dq)
		}
	}
	if keys {
		kern.Product(k1-k0-seen, w, 0, k, k, from(dv, seen), false) // zeros, where no query was
		kern.Product(k1-k0-seen, w, 0, k, k, from(dk, seen), false)
		t.dk.wrote(sample, head, k0, k1, s.dk)
		t.dv.wrote(sample, head, k0, k1, s.dv)
	}
}

// from leaves out the first rows.
func from[T float32 | float64](m kern.Mat[T], row int) kern.Mat[T] {
	m.Data = m.Data[min(row*m.RS, len(m.Data)):]
	return m
}

func matrix[T float32 | float64](v []T, columns int) kern.Mat[T] {
	return kern.Mat[T]{Data: v, RS: columns, CS: 1}
}

func transposed[T float32 | float64](m kern.Mat[T]) kern.Mat[T] {
	return kern.Mat[T]{Data: m.Data, RS: m.CS, CS: m.RS}
}
