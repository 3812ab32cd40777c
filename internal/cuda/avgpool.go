package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("average pool", floats, driver.Kernel{Run: averagePool})
	register("average pool backward", floats, driver.Kernel{Run: averagePoolBackward})
}

// images cuts [… h w] into planes.
func images(shape []int) (n, h, w int) {
	last := len(shape) - 2
	return driver.Numel(shape[:last]), shape[last], shape[last+1]
}

// windows is struct Windows of avgpool.cu: out of them over n elements of a dimension. F:
// kernel, stride, padding, 1 to count it; none for adaptive windows.
func windows(f []float64, n, out int) []uint64 {
	w := []uint64{uint64(n), uint64(out), 0, 0, 0, 0}
	for i, v := range f {
		w[2+i] = uint64(v)
	}
	return w
}

func averagePool(a *driver.Args) {
	n, h, w := images(a.In[0].Shape)
	_, oh, ow := images(a.Out[0].Shape)
	grid, block := elements(a.Out[0].Len())
	launch(a, "avgpool", "average_pool"+suffixes[a.In[0].Type], grid, block, 0, &a.In[0], &a.Out[0], n, windows(a.F, h, oh), windows(a.F, w, ow))
}

// averagePoolBackward: dy; writes dx. F as forward.
func averagePoolBackward(a *driver.Args) {
	n, h, w := images(a.Out[0].Shape)
	_, oh, ow := images(a.In[0].Shape)
	grid, block := elements(a.Out[0].Len())
	launch(a, "avgpool", "average_pool_backward"+suffixes[a.In[0].Type], grid, block, 0, &a.In[0], &a.Out[0], n, windows(a.F, h, oh), windows(a.F, w, ow))
}
