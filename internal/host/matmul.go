package host

import (
	"slices"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	matmuls := func(t driver.DType, run func(*driver.Args)) {
		driver.Register("matmul", t, backend, driver.Kernel{Strided: true, Run: run, Workspace: func(a *driver.Args) int64 {
			p := newProduct(a)
			return int64(p.slots) * p.workspace(t, a.Threads)
		}})
	}
	matmuls(driver.Float32, matmul[float32])
	matmuls(driver.Float64, matmul[float64])
	matmuls(driver.BFloat16, matmul[driver.B16])
	matmuls(driver.Float16, matmul[driver.F16])
}

// product is a batch of matrix products of one size.
type product struct {
	lead    []int // of the batch
	m, n, k int
	x, y    driver.Array // as […lead m k] and […lead k n]
	slots   int          // products at a time; 1: one on all threads
}

// newProduct takes x and y of any strides, broadcast to the batch. One y for all is one
// product, where x's rows lie evenly. How the work is shared out changes no bit: an element
// of kern's products depends on its row, its column and the depth alone.
func newProduct(a *driver.Args) product {
	last := len(a.Out[0].Shape) - 2
	shape := func(in *driver.Array) []int {
		return append(slices.Clone(a.Out[0].Shape[:last]), in.Shape[len(in.Shape)-2:]...)
	}
	p := product{lead: a.Out[0].Shape[:last], m: a.Out[0].Shape[last], n: a.Out[0].Shape[last+1], slots: 1}
	p.x, p.y = driver.Expand(&a.In[0], shape(&a.In[0])), driver.Expand(&a.In[1], shape(&a.In[1]))
	p.k = p.x.Shape[last+1]
	if !slices.ContainsFunc(p.y.Strides[:last], func(s int) bool { return s != 0 }) {
		if rows, strides := driver.Collapse(p.x.Shape[:last+1], p.x.Strides[:last+1]); len(rows) == 1 {
			p.lead, p.m = nil, rows[0]
			p.x.Shape, p.x.Strides = []int{p.m, p.k}, []int{strides[0], p.x.Strides[last+1]}
			p.y.Shape, p.y.Strides = p.y.Shape[last:], p.y.Strides[last:]
		}
	}
	const small = 48 * 48 * 48 // kern uses one thread for these
	if batch := driver.Numel(p.lead); batch >= a.Threads || p.m*p.n*p.k <= small {
		p.slots = max(1, min(batch, a.Threads))
	}
	return p
}

func (p *product) workspace(t driver.DType, threads int) int64 {
	if p.slots > 1 {
		threads = 1
	}
	return (kern.GemmWorkspace(t, p.m, p.n, p.k, threads, false) + 63) &^ 63
}

// offsets are where each matrix of the batch begins.
func (p *product) offsets(strides []int) []int {
	batch := driver.Numel(p.lead)
	offs := make([]int, 0, batch)
	if p.k == 0 {
		return make([]int, batch)
	}
	driver.Runs(p.lead, strides[:len(p.lead)], 0, batch, func(off, stride, n int) {
		for i := range n {
			offs = append(offs, off+i*stride)
		}
	})
	return offs
}

// matmul: x, y and a bias for each column that may be missing.
func matmul[T kern.Elem](a *driver.Args) {
	p := newProduct(a)
	if p.m == 0 || p.n == 0 {
		return
	}
	var bias []T
	if len(a.In) == 3 {
		if b := &a.In[2]; b.Contiguous() {
			bias = driver.Of[T](b)[:p.n]
		} else {
			bias = make([]T, p.n)
			driver.Gather(bias, b)
		}
	}
	x, y, out := driver.Of[T](&p.x), driver.Of[T](&p.y), driver.Of[T](&a.Out[0])
	xs, ys := p.offsets(p.x.Strides), p.offsets(p.y.Strides)
	work := int(p.workspace(a.Out[0].Type, a.Threads))
	multiply := func(i, slot, threads int) {
		last := len(p.lead)
		kern.Gemm(threads, p.m, p.n, p.k,
			kern.Mat[T]{Data: x[xs[i]:], RS: p.x.Strides[last], CS: p.x.Strides[last+1]},
			kern.Mat[T]{Data: y[ys[i]:], RS: p.y.Strides[last], CS: p.y.Strides[last+1]},
			kern.Mat[T]{Data: out[i*p.m*p.n:], RS: p.n, CS: 1},
			false, bias, a.Work[slot*work:][:work])
	}
	if p.slots > 1 {
		slots(p.slots, len(xs), func(i, slot int) { multiply(i, slot, 1) })
		return
	}
	for i := range xs {
		multiply(i, 0, a.Threads)
	}
}
