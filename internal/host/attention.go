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

// queryBlock is how many rows of scores exist at a time, for each thread.
const queryBlock = 64

// attention works on one head of one sample at a time: what it reads is brought into the
// workspace of its thread, and blocks of its queries meet all keys that they may.
type attention[T float32 | float64] struct {
	batch, heads, rows, keys, width int
	causal                          bool
	scale                           T
	slots                           int
}

// newAttention: q, k, v [b h t d]. F: 1 for causal.
func newAttention[T float32 | float64](a *driver.Args) attention[T] {
	q, k := a.In[0].Shape, a.In[1].Shape
	return attention[T]{
		batch: q[0], heads: q[1], rows: q[2], keys: k[2], width: q[3],
		causal: a.F[0] != 0, scale: T(1 / math.Sqrt(float64(max(1, q[3])))),
		slots: max(1, min(a.Threads, q[0]*q[1])),
	}
}

// blocks cuts the queries: rows r0 to r1 meet the first n keys.
func (t *attention[T]) blocks(fn func(r0, r1, n int)) {
	for r0 := 0; r0 < t.rows; r0 += queryBlock {
		r1 := min(r0+queryBlock, t.rows)
		n := t.keys
		if t.causal {
			n = min(r1, n)
		}
		fn(r0, r1, n)
	}
}

// headSpace is a thread's part of the workspace: a head's operands, and a block's.
type headSpace[T float32 | float64] struct {
	k, v, dk, dv  []T // [keys width]
	q, o, dy, dq  []T // [queryBlock width]
	scores, dprob []T // [queryBlock keys]
	gemm          []byte
}

// space lays out one part over work, and is its length in bytes; work may be nil.
func (t *attention[T]) space(back bool, work []byte) (s headSpace[T], bytes int) {
	var z T
	take := func(n int) []T {
		from := bytes
		if bytes += (n*int(unsafe.Sizeof(z)) + 63) &^ 63; work == nil {
			return nil
		}
		return driver.Cast[T](work[from:bytes])[:n]
	}
	block := min(queryBlock, t.rows)
	s.k, s.v, s.q, s.o, s.scores = take(t.keys*t.width), take(t.keys*t.width), take(block*t.width), take(block*t.width), take(block*t.keys)
	if back {
		s.dk, s.dv, s.dy, s.dq, s.dprob = take(t.keys*t.width), take(t.keys*t.width), take(block*t.width), take(block*t.width), take(block*t.keys)
	}
	dtype := driver.Float32
	if unsafe.Sizeof(z) == 8 {
		dtype = driver.Float64
	}
	var most int64
	t.blocks(func(r0, r1, n int) {
		m := r1 - r0
		most = max(most, kern.GemmWorkspace(dtype, m, n, t.width, 1), kern.GemmWorkspace(dtype, m, t.width, n, 1))
		if back {
			most = max(most, kern.GemmWorkspace(dtype, n, t.width, m, 1))
		}
	})
	from := bytes
	if bytes += int(most+63) &^ 63; work != nil {
		s.gemm = work[from:bytes]
	}
	return s, bytes
}

func attentionSpace[T float32 | float64](back bool) func(*driver.Args) int64 {
	return func(a *driver.Args) int64 {
		t := newAttention[T](a)
		_, bytes := t.space(back, nil)
		return int64(t.slots * bytes)
	}
}

// each runs fn for every head of every sample.
func (t *attention[T]) each(back bool, work []byte, fn func(sample, head int, s *headSpace[T])) {
	_, bytes := t.space(back, nil)
	slots(t.slots, t.batch*t.heads, func(i, slot int) {
		s, _ := t.space(back, work[slot*bytes:][:bytes])
		fn(i/t.heads, i%t.heads, &s)
	})
}

// rowsOf reads, or with store writes, rows r0 to r1 of one head of [b h t d].
func rowsOf[T float32 | float64](a *driver.Array, move func(v []T, off, stride int), v []T, sample, head, r0, r1 int) {
	width := a.Shape[3]
	off := sample*a.Strides[0] + head*a.Strides[1]
	for r := r0; r < r1 && width > 0; r++ {
		move(v[(r-r0)*width:][:width], off+r*a.Strides[2], a.Strides[3])
	}
}

func matrix[T float32 | float64](v []T, columns int) kern.Mat[T] {
	return kern.Mat[T]{Data: v, RS: columns, CS: 1}
}

func transposed[T float32 | float64](v []T, columns int) kern.Mat[T] {
	return kern.Mat[T]{Data: v, RS: 1, CS: columns}
}

// scores of a block's scaled queries with the first n keys.
func (t *attention[T]) scores(s *headSpace[T], m, n int) {
	for i, v := range s.q[:m*t.width] {
		s.q[i] = v * t.scale
	}
	kern.Gemm(1, m, n, t.width, matrix(s.q, t.width), transposed(s.k, t.width), matrix(s.scores, n), false, nil, s.gemm)
}

// seen is how many of n keys a query may see.
func (t *attention[T]) seen(query, n int) int {
	if t.causal {
		return min(query+1, n)
	}
	return n
}

// attend: q, k, v; writes o [b h t d] and log Σ exp of each row of scores [b h t].
func attend[T float32 | float64](a *driver.Args) {
	t := newAttention[T](a)
	q, k, v, o := load[T](&a.In[0]), load[T](&a.In[1]), load[T](&a.In[2]), store[T](&a.Out[0])
	sums := driver.Of[T](&a.Out[1])
	t.each(false, a.Work, func(sample, head int, s *headSpace[T]) {
		rowsOf(&a.In[1], k, s.k, sample, head, 0, t.keys)
		rowsOf(&a.In[2], v, s.v, sample, head, 0, t.keys)
		t.blocks(func(r0, r1, n int) {
			m := r1 - r0
			rowsOf(&a.In[0], q, s.q, sample, head, r0, r1)
			t.scores(s, m, n)
			for r := range m {
				row := s.scores[r*n:][:n]
				seen := row[:t.seen(r0+r, n)]
				clear(row[len(seen):])
				sums[(sample*t.heads+head)*t.rows+r0+r] = softmaxInPlace(seen)
			}
			kern.Gemm(1, m, t.width, n, matrix(s.scores, n), matrix(s.v, t.width), matrix(s.o, t.width), false, nil, s.gemm)
			rowsOf(&a.Out[0], o, s.o, sample, head, r0, r1)
		})
	})
}

// softmaxInPlace returns log Σ exp(row).
func softmaxInPlace[T float32 | float64](row []T) T {
	if row := f32(row); row != nil {
		top := kern.MaxRow(row)
		kern.ExpShiftRow(row, row, top)
		sum := kern.SumRow(row)
		kern.ScaleRow(row, row, float32(1/sum))
		return T(top + float32(math.Log(sum)))
	}
	top := T(math.Inf(-1))
	for _, v := range row {
		top = max(top, v)
	}
	for i, v := range row {
		row[i] = v - top
	}
	expRow(nil, row, row, nil, nil)
	var sum float64
	for _, v := range row {
		sum += float64(v)
	}
	by := T(1 / sum)
	for i := range row {
		row[i] *= by
	}
	return top + T(math.Log(sum))
}

// attendBackward: q, k, v, o, log Σ exp, dy; writes dq, dk, dv. With probabilities p made
// again, dv = pᵀ·dy, dp = dy·vᵀ, ds = p·(dp − Σ dy·o), dq = ds·k/√d and dk = dsᵀ·q/√d.
func attendBackward[T float32 | float64](a *driver.Args) {
	t := newAttention[T](a)
	q, k, v, o, dy := load[T](&a.In[0]), load[T](&a.In[1]), load[T](&a.In[2]), load[T](&a.In[3]), load[T](&a.In[5])
	sums := values[T](&a.In[4])
	dq, dk, dv := store[T](&a.Out[0]), store[T](&a.Out[1]), store[T](&a.Out[2])
	t.each(true, a.Work, func(sample, head int, s *headSpace[T]) {
		rowsOf(&a.In[1], k, s.k, sample, head, 0, t.keys)
		rowsOf(&a.In[2], v, s.v, sample, head, 0, t.keys)
		clear(s.dk)
		clear(s.dv)
		t.blocks(func(r0, r1, n int) {
			m, w := r1-r0, t.width
			rowsOf(&a.In[0], q, s.q, sample, head, r0, r1)
			rowsOf(&a.In[3], o, s.o, sample, head, r0, r1)
			rowsOf(&a.In[5], dy, s.dy, sample, head, r0, r1)
			t.scores(s, m, n)
			for r := range m {
				row := s.scores[r*n:][:n]
				seen := row[:t.seen(r0+r, n)]
				clear(row[len(seen):])
				sum := sums[(sample*t.heads+head)*t.rows+r0+r]
				sumExp(seen, seen, sum)
			}
			kern.Gemm(1, n, w, m, transposed(s.scores, n), matrix(s.dy, w), matrix(s.dv, w), true, nil, s.gemm)
			kern.Gemm(1, m, n, w, matrix(s.dy, w), transposed(s.v, w), matrix(s.dprob, n), false, nil, s.gemm)
			for r := range m {
				var inner float64
				ys, os := s.dy[r*w:][:w], s.o[r*w:][:w]
				for i, v := range ys {
					inner += float64(v) * float64(os[i])
				}
				p, dp := s.scores[r*n:][:n], s.dprob[r*n:][:n]
				for i := range p {
					p[i] *= dp[i] - T(inner) // ds from here on
				}
			}
			kern.Gemm(1, m, w, n, matrix(s.scores, n), matrix(s.k, w), matrix(s.dq, w), false, nil, s.gemm)
			for i := range s.dq[:m*w] {
				s.dq[i] *= t.scale
			}
			rowsOf(&a.Out[0], dq, s.dq, sample, head, r0, r1)
			kern.Gemm(1, n, w, m, transposed(s.scores, n), matrix(s.q, w), matrix(s.dk, w), true, nil, s.gemm)
		})
		rowsOf(&a.Out[1], dk, s.dk, sample, head, 0, t.keys)
		rowsOf(&a.Out[2], dv, s.dv, sample, head, 0, t.keys)
	})
}
