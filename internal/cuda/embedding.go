package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("embedding", floats, driver.Kernel{Mixed: true, Run: embedding})
	register("embedding backward", floats, driver.Kernel{Mixed: true, Run: embeddingBackward, Workspace: func(a *driver.Args) int64 {
		return scatterSpace(a.In[1].Len())
	}})
	register("index outside", []driver.DType{driver.Int64, driver.Int32}, driver.Kernel{Run: indexOutside})
}

// indexOutside: index; writes 1 and the first one outside of [0, F[0]), or two zeros.
func indexOutside(a *driver.Args) {
	launch(a, "gather", "indexoutside", line(1, 1), [3]int{1024, 1, 1}, 0, a.In[0].Len(), int(a.F[0]), indexWords(&a.In[0]), &a.Out[0])
}

// embedding: w, index.
func embedding(a *driver.Args) {
	w := &a.In[0]
	selectRows(a, a.In[1].Len(), a.In[1].Len(), w.Shape[0], w.Shape[1])
}

// embeddingBackward: dy, index; writes dw. F: the row without a gradient.
func embeddingBackward(a *driver.Args) {
	index, rows, width := &a.In[1], a.Out[0].Shape[0], a.Out[0].Shape[1]
	scatter(a, uses{index: index, places: rows}, 1, index.Len(), rows, width, int(a.F[0]))
}
