package cuda

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

// gemm is what cuBLAS is asked for: a batch of products out = x·y, or out += x·y, all
// row-major. A matrix that is transposed has its columns one after the other. From one row
// (or column) to the next are ld elements, from one matrix to the next stride.
type gemm struct {
	dtype          driver.DType
	m, n, k, batch int
	x, y, out      operandMatrix
	add            bool
	work           []byte
}

type operandMatrix struct {
	address    uint64
	ld, stride int
	transposed bool
}

// A multiplier is a Queue that may have cuBLAS. It answers false where it has none, or
// none that can do this.
type multiplier interface {
	Multiply([]gemm) (bool, error)
}

// A product of less than largeProduct multiplications is not worth a library's while.
// largeWork is what cuBLAS wants at least; what more the segments' sums would take, it may
// use. Both belong to the shapes, so that a dry run need not know who computes.
const (
	largeProduct = 1 << 21
	largeWork    = 16 << 10
)

func (p *product) large() bool {
	n := 1.0 // too many elements for an int may be multiplied
	for _, d := range []int{driver.Numel(p.lead), p.m, p.n, p.k} {
		n *= float64(d)
	}
	return n >= largeProduct
}

// byLibrary has cuBLAS compute the product, where that is possible. A bias is there first,
// and the product is added to it, so that each result is rounded once.
func (p *product) byLibrary(a *driver.Args, bias *driver.Array, add bool) bool {
	q, ok := a.Queue.(multiplier)
	if !ok {
		return false
	}
	calls := p.gemms(a, add || bias != nil)
	if len(calls) == 0 {
		return false
	}
	if bias != nil {
		out := &a.Out[0]
		convert(&driver.Args{In: []driver.Array{driver.Expand(bias, out.Shape)}, Out: []driver.Array{*out}, Queue: a.Queue})
	}
	done, err := q.Multiply(calls)
	started(a, err)
	return done || err != nil
}

// gemms are the calls that make up the product; none: cuBLAS cannot read these strides.
func (p *product) gemms(a *driver.Args, add bool) []gemm {
	const mostCalls = 32
	out := &a.Out[0]
	if !p.large() {
		return nil
	}
	for _, n := range []int{p.m, p.n, p.k, p.ld} {
		if n > math.MaxInt32 {
			return nil
		}
	}
	g := gemm{dtype: out.Type, m: p.m, n: p.n, k: p.k, batch: 1, add: add, work: a.Work}
	g.out = operandMatrix{address: address(out.Data), ld: p.ld}
	var fits [2]bool
	last := len(p.lead)
	g.x, fits[0] = matrixOf(&p.x, last)
	g.y, fits[1] = matrixOf(&p.y, last)
	if !fits[0] || !fits[1] {
		return nil
	}
	lead, x, y := joined(p.lead, p.x.Strides[:last], p.y.Strides[:last])
	calls := []gemm{g}
	if last = len(lead) - 1; last >= 0 {
		calls[0].batch, calls[0].x.stride, calls[0].y.stride, calls[0].out.stride = lead[last], x[last], y[last], p.m*p.n
		size, step := out.Type.Size(), lead[last]*p.m*p.n
		for i := last - 1; i >= 0; i-- {
			if len(calls)*lead[i] > mostCalls {
				return nil
			}
			inner := calls
			for j := 1; j < lead[i]; j++ {
				for _, c := range inner {
					c.x.address += uint64(j * x[i] * size)
					c.y.address += uint64(j * y[i] * size)
					c.out.address += uint64(j * step * size)
					calls = append(calls, c)
				}
			}
			step *= lead[i]
		}
	}
	return calls
}

// joined are dimensions that two arrays share, with both arrays' strides, as few as can be.
func joined(shape, x, y []int) (s, sx, sy []int) {
	for i, d := range shape {
		if d == 1 {
			continue
		}
		if n := len(s) - 1; n >= 0 && sx[n] == d*x[i] && sy[n] == d*y[i] {
			s[n], sx[n], sy[n] = s[n]*d, x[i], y[i]
			continue
		}
		s, sx, sy = append(s, d), append(sx, x[i]), append(sy, y[i])
	}
	return s, sx, sy
}

// matrixOf is the matrix of an array's dimensions from last on.
func matrixOf(a *driver.Array, last int) (m operandMatrix, ok bool) {
	m.address = address(a.Data)
	rows, cols, down, right := a.Shape[last], a.Shape[last+1], a.Strides[last], a.Strides[last+1]
	if m.ld, ok = leading(rows, cols, down, right); !ok {
		m.ld, ok = leading(cols, rows, right, down)
		m.transposed = ok
	}
	return m, ok
}

// leading is the distance from row to row, where the elements of a row lie one after the
// other and rows do not overlap.
func leading(rows, cols, down, right int) (int, bool) {
	if rows == 1 {
		down = cols
	}
	return down, (right == 1 || cols == 1) && down >= cols && down <= math.MaxInt32
}
