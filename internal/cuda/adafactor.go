package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("adafactor", floats, driver.Kernel{
		Workspace: func(a *driver.Args) int64 { return newFactored(a).bytes() },
		Run:       adafactor,
	})
	register("adafactor vector", floats, driver.Kernel{
		Workspace: func(a *driver.Args) int64 { return 64 + newReduction(1, a.Out[0].Len(), false).workspace() },
		Run:       adafactorVector,
	})
}

// factored are the sums that adafactor makes of a matrix: of the squares of gradients in
// rows and in columns, of what is left of them in all, of the weights' squares, and of the
// means of rows.
type factored struct {
	rows, cols                int
	byRow, byCol, all, ofRows reduction
}

func newFactored(a *driver.Args) *factored {
	w := &a.Out[0]
	f := &factored{rows: w.Shape[0]}
	f.cols = w.Len() / f.rows
	f.byRow, f.byCol = newReduction(f.rows, f.cols, false), newReduction(f.cols, f.rows, true)
	f.all, f.ofRows = newReduction(1, w.Len(), false), newReduction(1, f.rows, false)
	return f
}

// bytes are for three numbers, a sum of each row and the parts of one reduction at a time.
func (f *factored) bytes() int64 {
	return 64 + int64(f.rows)*8 + max(f.byRow.workspace(), f.byCol.workspace(), f.all.workspace(), f.ofRows.workspace())
}

// adafactor steps a matrix; In, Out and F are the host's, whose formulas stand there.
func adafactor(a *driver.Args) {
	f := newFactored(a)
	g, w, row, col := &a.In[0], &a.Out[0], &a.Out[1], &a.Out[2]
	rows, cols, n := f.rows, f.cols, w.Len()
	total, mean, work := numbers(a.Work, 2), numbers(a.Work[16:], 1), a.Work[64:]
	rowSums, work := numbers(work, rows), work[rows*8:]
	scratch := a.Out[3].Data
	rowParts, colParts := numbers(scratch, rows), numbers(scratch[rows*8:], cols)
	squares := function("square sum", g.Type)

	f.byRow.run(a, work, rowParts, 1, "sum", squares, g, apart(rows, cols), apart(cols, 1))
	f.byCol.run(a, work, colParts, 1, "sum", squares, g, apart(cols, 1), apart(rows, cols))
	run(a, "adafactor", function("adafactor means", row.Type), spread(max(rows, cols), 1),
		rows, cols, a.F[2], a.F[3], rowParts, colParts, row, col)
	f.ofRows.run(a, work, mean, 1/float64(rows), "sum", function("sum", row.Type), row, layout{}, apart(rows, 1))
	run(a, "adafactor", function("adafactor parts", row.Type), spread(max(rows, cols), 1),
		rows, cols, mean, row, col, rowParts, colParts)

	f.all.run(a, work, part(total, 0), 1, "sum", function("square sum", w.Type), w, layout{}, apart(n, 1))
	f.byRow.run(a, work, rowSums, 1, "adafactor", function("adafactor change", g.Type), g, rowParts, colParts)
	f.ofRows.run(a, work, part(total, 1), 1, "sum", function("sum", driver.Float64), rowSums, layout{}, apart(rows, 1))
	run(a, "adafactor", function("adafactor", g.Type), spread(n, 4),
		n, dense(w, g), a.Key[:], cols, a.F[1], rate(a.F), total, rowParts, colParts, g, w)
}

// adafactorVector steps what is no matrix.
func adafactorVector(a *driver.Args) {
	g, w, v := &a.In[0], &a.Out[0], &a.Out[1]
	n := w.Len()
	total, work := numbers(a.Work, 2), a.Work[64:]
	all := newReduction(1, n, false)
	run(a, "adafactor", function("adafactor squares", g.Type), spread(n, 1), n, a.F[2], a.F[3], g, v)
	all.run(a, work, part(total, 0), 1, "sum", function("square sum", w.Type), w, layout{}, apart(n, 1))
	all.run(a, work, part(total, 1), 1, "adafactor", function("adafactor vector change", g.Type), g, v)
	run(a, "adafactor", function("adafactor vector", g.Type), spread(n, 4),
		n, dense(w, g, v), a.Key[:], a.F[1], rate(a.F), total, g, w, v)
}

// rate is struct Rate of adafactor.cu.
func rate(f []float64) []uint64 {
	w := []uint64{f64bits(f[0]), f64bits(f[4]), f64bits(f[5]), 0}
	if f[6] != 0 {
		w[3] = 1
	}
	return w
}

// numbers are so many of float64 at the start of memory.
func numbers(mem []byte, n int) *driver.Array {
	return &driver.Array{Type: driver.Float64, Shape: []int{n}, Strides: []int{1}, Data: mem[:n*8]}
}

func part(a *driver.Array, i int) *driver.Array { return numbers(a.Data[i*8:], 1) }

// apart is n elements, a step apart.
func apart(n, step int) layout {
	l := layout{rank: 1}
	l.shape[0], l.strides[0] = n, step
	return l
}
