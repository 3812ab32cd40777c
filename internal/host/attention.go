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
const attentionBlock = 64

// attention works on blocks of one head's queries. Threads share out heads or, where these are few, their blocks: which
// changes no bit. Operands are read where they are, but for those of another type, which come into the workspace of
// the thread.
type attention[T float32 | float64] struct {
	batch, heads, rows, keys, width int
	causal, back                    bool
	scale                           T
	split                           bool // share out blocks
	slots                           int
	other                           bool // some operand is of another type
	gemm                            int  // bytes
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
	dtype := typeOf[T]()
	for i := range a.In {
		t.other = t.other || a.In[i].Type != dtype
	}
	space := func(m, n, k int) { t.gemm = max(t.gemm, int(kern.GemmWorkspace(dtype, m, n, k, 1))) }
	each := func(m, n int) {
		space(m, n, t.width)
		space(m, t.width, n)
		if back {
			space(n, t.width, m)
		}
	}
	for r0 := 0; r0 < t.rows; r0 += attentionBlock {
		m := min(attentionBlock, t.rows-r0)
		each(m, t.seen(r0+m-1))
		if t.split && back {
			each(m, min(attentionBlock, t.keys))
			each(m, t.keys%attentionBlock)
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

// headSpace is a thread's part of the workspace.
type headSpace[T float32 | float64] struct {
	k, v, dk, dv   []T // [keys width], of a head
	q, o, dy, dq   []T // [block width]
	scores, dprobs []T // [block keys]
	row            []T // [width]
	gemm           []byte
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
	if t.other {
		s.k, s.v, s.q, s.dy = take(t.keys*t.width), take(t.keys*t.width), take(block), take(block)
	}
	s.o, s.scores = take(block), take(min(attentionBlock, t.rows)*t.keys)
	if t.back {
		s.dk, s.dv, s.dq, s.row = take(t.keys*t.width), take(t.keys*t.width), take(block), take(t.width)
		s.dprobs = take(min(attentionBlock, t.rows) * t.keys)
	}
	from := bytes
	if bytes += (t.gemm + 63) &^ 63; work != nil {
		s.gemm = work[from:bytes]
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
	_, bytes := t.space(nil)
	slots(t.slots, t.batch*t.heads*n, func(i, slot int) {
		s, _ := t.space(work[slot*bytes:][:bytes])
		fn(i/n/t.heads, i/n%t.heads, i%n, &s)
	})
}

// headsOf is an operand or a result [b h t d].
type headsOf[T float32 | float64] struct {
	*driver.Array
	direct []T                          // if it is of this type
	move   func(v []T, off, stride int) // from or to it
}

func reads[T float32 | float64](a *driver.Array) headsOf[T] {
	return headsOf[T]{a, elementsOf[T](a), load[T](a)}
}

func writes[T float32 | float64](a *driver.Array) headsOf[T] {
	x := headsOf[T]{a, elementsOf[T](a), store[T](a)}
	if a.Strides[3] != 1 {
		x.direct = nil // products have neighbours for columns
	}
	return x
}

func elementsOf[T float32 | float64](a *driver.Array) []T {
	if a.Type != typeOf[T]() {
		return nil
	}
	return driver.Of[T](a)
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

// wrote brings rows from buf to where they belong, if they are not there.
func (x *headsOf[T]) wrote(sample, head, r0, r1 int, buf []T) {
	if x.direct == nil {
		x.transfer(sample, head, r0, r1, buf)
	}
}

func (x *headsOf[T]) transfer(sample, head, r0, r1 int, buf []T) {
	width := x.Shape[3]
	off := sample*x.Strides[0] + head*x.Strides[1]
	for r := r0; r < r1 && width > 0; r++ {
		x.move(buf[(r-r0)*width:][:width], off+r*x.Strides[2], x.Strides[3])
	}
}

func matrix[T float32 | float64](v []T, columns int) kern.Mat[T] {
	return kern.Mat[T]{Data: v, RS: columns, CS: 1}
}

func transposed[T float32 | float64](m kern.Mat[T]) kern.Mat[T] {
	return kern.Mat[T]{Data: m.Data, RS: m.CS, CS: m.RS}
}

// from leaves out the first rows.
func from[T float32 | float64](m kern.Mat[T], row int) kern.Mat[T] {
	if row > 0 && len(m.Data) > 0 {
		m.Data = m.Data[row*m.RS:]
	}
	return m
}

// attend: q, k, v; writes o [b h t d] and log Σ exp of each row of scores [b h t].
func attend[T float32 | float64](a *driver.Args) {
	t := newAttention[T](a, false)
	q, k, v, o := reads[T](&a.In[0]), reads[T](&a.In[1]), reads[T](&a.In[2]), writes[T](&a.Out[0])
	sums := driver.Of[T](&a.Out[1])
	parts, length := 1, t.rows
	if t.split {
		parts, length = blocksOf(t.rows), attentionBlock
	}
	t.each(parts, a.Work, func(sample, head, part int, s *headSpace[T]) {
		first, end := part*length, min((part+1)*length, t.rows)
		if first >= end {
			return
		}
		km, vm := k.read(sample, head, 0, t.seen(end-1), s.k), v.read(sample, head, 0, t.seen(end-1), s.v)
		for r0 := first; r0 < end; r0 += attentionBlock {
			r1 := min(r0+attentionBlock, end)
			m, n := r1-r0, t.seen(r1-1)
			kern.Gemm(1, m, n, t.width, q.read(sample, head, r0, r1, s.q), transposed(km), matrix(s.scores, n), false, nil, s.gemm)
			var by [attentionBlock]T
			for r := range m {
				row := s.scores[r*n:][:n]
				seen := row[:t.seen(r0+r)]
				clear(row[len(seen):])
				top, sum := attendRow(seen, t.scale)
				sums[(sample*t.heads+head)*t.rows+r0+r] = top + T(math.Log(float64(sum)))
				by[r] = 1 / sum
			}
			om := o.rows(sample, head, r0, r1, s.o)
			kern.Gemm(1, m, t.width, n, matrix(s.scores, n), vm, om, false, nil, s.gemm)
			for r := range m {
				o := om.Data[r*om.RS:][:t.width]
				scaled(o, o, by[r])
			}
			o.wrote(sample, head, r0, r1, s.o)
		}
	})
}

// attendRow is x = e^(scale·x − top), with top the greatest of scale·x; it returns that and the sum.
func attendRow[T float32 | float64](x []T, scale T) (top, sum T) {
	if f := f32(x); f != nil {
		top, sum := kern.AttendRow(f, float32(scale))
		return T(top), T(sum)
	}
	top = T(math.Inf(-1))
	for _, v := range x {
		top = max(top, scale*v)
	}
	for i, v := range x {
		x[i] = T(math.Exp(float64(scale*v - top)))
		sum += x[i]
	}
	return top, sum
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
	km, vm := t.k.read(sample, head, k0, k1, s.k), t.v.read(sample, head, k0, k1, s.v)
	dk, dv := matrix(s.dk, w), matrix(s.dv, w)
	if keys {
		clear(s.dk[:(k1-k0)*w])
		clear(s.dv[:(k1-k0)*w])
	}
	for r0 := first; r0 < end; r0 += attentionBlock {
		r1 := min(r0+attentionBlock, end)
		m, n := r1-r0, min(k1, t.seen(r1-1))-k0
		if n <= 0 {
			continue
		}
		q, o, dy := t.q.read(sample, head, r0, r1, s.q), t.o.read(sample, head, r0, r1, s.o), t.dy.read(sample, head, r0, r1, s.dy)
		p, ds := matrix(s.scores, n), matrix(s.dprobs, n)
		kern.Gemm(1, m, n, w, q, transposed(km), p, false, nil, s.gemm)
		kern.Gemm(1, m, n, w, dy, transposed(vm), ds, false, nil, s.gemm)
		for r := range m {
			seen := min(max(t.seen(r0+r)-k0, 0), n)
			x, y := p.Data[r*n:][:n], ds.Data[r*n:][:n]
			clear(x[seen:])
			clear(y[seen:])
			attendBackRow(x[:seen], y[:seen], t.scale, t.sums[(sample*t.heads+head)*t.rows+r0+r], dot(from(dy, r), from(o, r), s.row))
		}
		if keys {
			kern.Gemm(1, n, w, m, transposed(p), dy, dv, true, nil, s.gemm)
			kern.Gemm(1, n, w, m, transposed(ds), q, dk, true, nil, s.gemm)
		}
		if queries {
			kern.Gemm(1, m, w, n, ds, km, t.dq.rows(sample, head, r0, r1, s.dq), false, nil, s.gemm)
			t.dq.wrote(sample, head, r0, r1, s.dq)
		}
	}
	if keys {
		t.dk.transfer(sample, head, k0, k1, s.dk)
		t.dv.transfer(sample, head, k0, k1, s.dv)
	}
}

// dot is the product of the first rows of x and y, of as many columns as row has.
func dot[T float32 | float64](x, y kern.Mat[T], row []T) T {
	n := len(row)
	if x.CS == 1 && y.CS == 1 {
		if f := f32(x.Data[:n]); f != nil {
			_, sum := kern.ProductsRow(f, f32(y.Data[:n]), 0)
			return T(sum)
		}
	}
	var sum float64
	for i := range n {
		sum += float64(x.Data[i*x.CS]) * float64(y.Data[i*y.CS])
	}
	return T(sum)
}

// attendBackRow is x = e^(scale·x − sums) and then y = x·(y − inner)·scale.
func attendBackRow[T float32 | float64](x, y []T, scale, sums, inner T) {
	if f := f32(x); f != nil {
		kern.AttendBackRow(f, f32(y), float32(scale), float32(sums), float32(inner))
		return
	}
	for i, v := range x {
		x[i] = T(math.Exp(float64(scale*v - sums)))
		y[i] = x[i] * (y[i] - inner) * scale
	}
}
