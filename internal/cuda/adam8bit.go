package cuda

import "github.com/snug-ml/snug/internal/driver"

// adam over moments in 8 bits. Out: weights, means, their scales, squares, their scales.
func init() {
	steps := stepping{module: "adam8bit", most: 50, numbers: adamNumbers}
	steps.entry = func(a *driver.Args) (string, []*driver.Array) {
		return function("adam 8bit", a.Out[0].Type), []*driver.Array{&a.In[0], &a.Out[0], &a.Out[1], &a.Out[3], &a.Out[2], &a.Out[4]}
	}
	steps.register("adam 8bit", []driver.DType{driver.Float32, driver.BFloat16, driver.Float16})
}
