package cuda

import (
	"fmt"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
)

func init() {
	register("matmul", floats, driver.Kernel{
		Strided:   true,
		Run:       func(a *driver.Args) { multiply(a, newProduct(a), false) },
		Workspace: func(a *driver.Args) int64 { p := newProduct(a); return p.parts(a) },
	})
	register("matmul add", floats, driver.Kernel{
		Strided:   true,
		Run:       func(a *driver.Args) { multiply(a, newSum(a), true) },
		Workspace: func(a *driver.Args) int64 { p := newSum(a); return p.parts(a) },
	})
}

// product is a batch of matrix products of one size.
type product struct {
	lead    []int // of the batch
	m, n, k int
	x, y    driver.Array // as […lead m k] and […lead k n]
	ld      int          // from one row of the result to the next
}

// newProduct takes x and y of any strides, broadcast to the batch. One y for all is one
// product, where x's rows lie evenly. As an element's bits depend on its row, its column
// and the depth alone, that changes none.
func newProduct(a *driver.Args) product {
	last := len(a.Out[0].Shape) - 2
	lead := a.Out[0].Shape[:last]
	shape := func(in *driver.Array) []int { return append(slices.Clone(lead), in.Shape[len(in.Shape)-2:]...) }
	p := product{lead: lead, m: a.Out[0].Shape[last], n: a.Out[0].Shape[last+1], ld: a.Out[0].Shape[last+1]}
	p.x, p.y = driver.Expand(&a.In[0], shape(&a.In[0])), driver.Expand(&a.In[1], shape(&a.In[1]))
	p.k = p.x.Shape[last+1]
	if !slices.ContainsFunc(p.y.Strides[:last], func(s int) bool { return s != 0 }) {
		if rows, strides := driver.Collapse(p.x.Shape[:last+1], p.x.Strides[:last+1]); len(rows) == 1 {
			p.lead, p.m = nil, rows[0]
			p.x.Shape, p.x.Strides = []int{p.m, p.k}, []int{strides[0], p.x.Strides[last+1]}
			p.y.Shape, p.y.Strides = p.y.Shape[last:], p.y.Strides[last:]
		}
	}
	return p
}

// newSum: matrices x and y of any strides, whose product is added to the output's rows.
func newSum(a *driver.Args) product {
	x, y := a.In[0], a.In[1]
	return product{m: x.Shape[0], n: y.Shape[1], k: x.Shape[1], x: x, y: y, ld: a.Out[0].Strides[0]}
}

// segment is how much of the depth is summed by itself. It depends on the depth alone.
func (p *product) segment() int {
	const depth = 16 // of a tile
	return max(512, (p.k/32+depth)/depth*depth)
}

func (p *product) tiles(rows int) int {
	return driver.Numel(p.lead) * ((p.m + rows - 1) / rows) * ((p.n + 63) / 64)
}

// splits is how many blocks share a tile: one for each segment, where there are few tiles.
func (p *product) splits() int {
	if p.tiles(64) > 64 {
		return 1
	}
	return max(1, (p.k+p.segment()-1)/p.segment())
}

// parts is the workspace for the segments' sums, or for cuBLAS.
func (p *product) parts(a *driver.Args) int64 {
	var bytes int64
	if splits := p.splits(); splits > 1 {
		bytes = int64(splits*driver.Numel(p.lead)*p.m*p.n) * int64(wide(a.Out[0].Type).Size())
	}
	if p.large() {
		bytes = max(bytes, largeWork)
	}
	return bytes
}

// wide is the type that floats are computed in.
func wide(t driver.DType) driver.DType {
	if t.Half() {
		return driver.Float32
	}
	return t
}

// matrices are the words of struct Matrices: across is the dimension, counted from the
// last, of rows for x and of columns for y.
func matrices(m *driver.Array, across int) []uint64 {
	last := len(m.Shape)
	lead := driver.Array{Shape: m.Shape[:last-2], Strides: m.Strides[:last-2]}
	i, deep := last-across, last-3+across
	return append([]uint64{address(m.Data), uint64(m.Strides[i]), uint64(m.Strides[deep]), uint64(m.Shape[i])},
		layoutOf(&lead, lead.Shape).words()...)
}

// multiply: x, y and a bias for each column that may be missing.
func multiply(a *driver.Args, p product, add bool) {
	out, suffix, batch, splits := &a.Out[0], suffixes[a.Out[0].Type], driver.Numel(p.lead), p.splits()
	if out.Len() == 0 {
		return
	}
	var bias *driver.Array
	stride := 0
	if len(a.In) == 3 {
		b := driver.Expand(&a.In[2], []int{p.n})
		bias, stride = &b, b.Strides[0]
	}
	if p.byLibrary(a, bias, add) {
		return
	}
	words := []uint64{uint64(p.m), uint64(p.n), uint64(p.k), uint64(batch), uint64(p.segment()), uint64(splits), uint64(p.ld), 0}
	if add {
		words[7] = 1
	}
	if batch*p.m*p.n <= 1024 && p.k <= p.segment() {
		launch(a, "matmul", "matmuldirect"+suffix, line(batch*p.m*p.n, threads), [3]int{threads, 1, 1}, 0,
			words, matrices(&p.x, 2), matrices(&p.y, 1), out, bias, stride)
		return
	}
	rows := 64
	if out.Type != driver.Float64 && splits == 1 && p.tiles(128) >= 128 {
		rows = 128
	}
	launch(a, "matmul", fmt.Sprintf("matmul%d%s", rows/16, suffix), line(splits*p.tiles(rows), 1), [3]int{256, 1, 1}, 0,
		words, matrices(&p.x, 2), matrices(&p.y, 1), out, bias, stride, a.Work)
	if splits > 1 {
		launch(a, "matmul", "matmulsum"+suffix, line(min(batch*p.m*p.n, 1<<20), threads), [3]int{threads, 1, 1}, 0,
			words, a.Work, out, bias, stride)
	}
}
