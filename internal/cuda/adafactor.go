package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("adafactor", floats, driver.Kernel{Run: adafactor})
	register("adafactor vector", floats, driver.Kernel{Run: adafactorVector})
}

// adafactor steps a matrix; In, Out and F are the host's, whose formulas stand there.
// Scratch has no room for more than a number for each row and column, and two, where the
// matrix is one tile; for more than that, there is room for the parts of sums.
func adafactor(a *driver.Args) {
	g, w, row, col := &a.In[0], &a.Out[0], &a.Out[1], &a.Out[2]
	n, rows := w.Len(), w.Shape[0]
	cols := n / rows
	scratch := a.Out[3].Data
	ofRows, ofCols := numbers(scratch, 0, rows), numbers(scratch, rows, cols)
	size, change := numbers(scratch, rows+cols, 1), numbers(scratch, rows+cols+1, 1)
	free := scratch[(rows+cols+2)*8:]
	relative := a.F[6] != 0

	alongRow, alongCol := newReduction(rows, cols, false), newReduction(cols, rows, true)
	squares := function("square sum", g.Type)
	inRows := []any{apart(rows, cols), apart(cols, 1)}
	sum := func(x, to *driver.Array, scale float64) {
		newReduction(1, rows, false).run(a, free, to, scale, "sum", function("sum", x.Type), x, layout{}, apart(rows, 1))
	}
	parts := func() {
		sum(row, change, 1/float64(rows))
		run(a, "adafactor", function("adafactor parts", row.Type), spread(max(rows, cols), 1), rows, cols, change, row, col, ofRows, ofCols)
	}

	if relative {
		alongRow.run(a, free, ofRows, 1, "sum", squares, append([]any{w}, inRows...)...)
		sum(ofRows, size, 1)
	}
	alongRow.run(a, free, ofRows, 1, "sum", squares, append([]any{g}, inRows...)...)
	alongCol.run(a, free, ofCols, 1, "sum", squares, g, apart(cols, 1), apart(rows, cols))
	run(a, "adafactor", function("adafactor means", row.Type), spread(max(rows, cols), 1), rows, cols, a.F[2], a.F[3], ofRows, ofCols, row, col)
	parts()
	alongRow.run(a, free, ofRows, 1, "adafactor", function("adafactor change", g.Type), g, ofRows, ofCols)
	sum(ofRows, change, 1)
	launch(a, "adafactor", "adafactor_rate", one, one, 0, n, 1, a.F[0], a.F[4], a.F[5], relative, size)
	parts()
	run(a, "adafactor", function("adafactor", g.Type), spread(n, 4), n, dense(w, g), a.Key[:], cols, a.F[1], size, ofRows, ofCols, g, w)
}

// adafactorVector steps what is no matrix. Scratch is for two sums of each tile.
func adafactorVector(a *driver.Args) {
	g, w, v := &a.In[0], &a.Out[0], &a.Out[1]
	n, tile := w.Len(), int(a.F[7]*a.F[8])
	if n == 0 {
		return
	}
	all := newReduction(1, n, false)
	all.each = max(all.each, tile)
	parts := all.parts()
	sizes, changes := numbers(a.Out[2].Data, 0, parts), numbers(a.Out[2].Data, parts, parts)
	relative := a.F[6] != 0

	run(a, "adafactor", function("adafactor squares", g.Type), spread(n, 1), n, a.F[2], a.F[3], g, v)
	if relative {
		all.once(a, sizes, 1, "sum", function("square sum", w.Type), w, layout{}, apart(n, 1))
	}
	all.once(a, changes, 1, "adafactor", function("adafactor vector change", g.Type), g, v)
	launch(a, "adafactor", "adafactor_rate", one, one, 0, n, parts, a.F[0], a.F[4], a.F[5], relative, sizes)
	run(a, "adafactor", function("adafactor vector", g.Type), spread(n, 4), n, dense(w, g, v), a.Key[:], a.F[1], sizes, g, w, v)
}

// numbers are n of float64, from number first on.
func numbers(mem []byte, first, n int) *driver.Array {
	return &driver.Array{Type: driver.Float64, Shape: []int{n}, Strides: []int{1}, Data: mem[first*8 : (first+n)*8]}
}

// apart is n elements, a step from each other.
func apart(n, step int) (l layout) {
	l.rank, l.shape[0], l.strides[0] = 1, n, step
	return l
}
