package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for _, t := range []driver.DType{driver.Float32, driver.Float64, driver.BFloat16, driver.Float16} {
		driver.Register("embedding", t, backend, driver.Kernel{Run: embedding, Mixed: true})
	}
	register("embedding backward",
		driver.Kernel{Run: embeddingBackward[float32], Mixed: true}, driver.Kernel{Run: embeddingBackward[float64], Mixed: true})
	for _, t := range []driver.DType{driver.Int64, driver.Int32} {
		driver.Register("index outside", t, backend, run(indexOutside))
	}
}

// indexOutside: index; writes 1 and the first one outside of [0, F[0]), or two zeros.
func indexOutside(a *driver.Args) {
	out := driver.Of[int64](&a.Out[0])
	out[0], out[1] = 0, 0
	for _, i := range values[int64](&a.In[0]) {
		if i < 0 || i >= int64(a.F[0]) {
			out[0], out[1] = 1, i
			return
		}
	}
}

// embedding: w, index. It copies rows of any type.
func embedding(a *driver.Args) {
	w, y := a.In[0].Data, a.Out[0].Data
	index := values[int64](&a.In[1])
	width := a.In[0].Shape[1] * a.In[0].Type.Size()
	par.Range(a.Threads, len(index), channelGrain(a.In[0].Shape[1]), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(y[i*width:(i+1)*width], w[int(index[i])*width:])
		}
	})
}

// embeddingBackward: dy, index; writes dw. F: the row without a gradient. Threads share
// out the rows of dw, some of each part of it, so that a row's sum goes in the order of its
// uses; whole rows are read where they lie together.
func embeddingBackward[T float32 | float64](a *driver.Args) {
	dy, dw := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	index := values[int64](&a.In[1])
	rows, width := a.Out[0].Shape[0], a.Out[0].Shape[1]
	padding := int64(a.F[0])
	par.Range(a.Threads, rows*width, grain, func(lo, hi int) { clear(dw[lo:hi]) })
	parts := 4
	if a.Threads == 1 || len(index)*width <= grain {
		parts = 1
	}
	par.For(a.Threads, parts, func(part int) {
		for i, row := range index {
			if row != padding && int(row)%parts == part {
				plus(dw[int(row)*width:][:width], dy[i*width:][:width])
			}
		}
	})
}

func plus[T float32 | float64](dst, y []T) {
	if d, ok := any(dst).([]float32); ok {
		kern.AddRow(d, d, any(y).([]float32))
		return
	}
	y = y[:len(dst)]
	for i := range dst {
		dst[i] += y[i]
	}
}
