package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("adam 8bit", []driver.DType{driver.Float32, driver.BFloat16, driver.Float16}, driver.Kernel{Run: adam8bit})
}

// adam8bit is adam over moments in 8 bits. Out: weights, means, their scales, squares,
// their scales.
func adam8bit(a *driver.Args) {
	g, w := &a.In[0], &a.Out[0]
	n := w.Len()
	run(a, "adam8bit", function("adam 8bit", w.Type), spread(n, 1),
		n, a.Key[:], words(adamNumbers(a.F)), g, w, &a.Out[1], &a.Out[2], &a.Out[3], &a.Out[4])
}
