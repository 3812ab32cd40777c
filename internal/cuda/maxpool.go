package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("max pool", floats, driver.Kernel{Run: maxPool, Mixed: true})
	register("max pool backward", floats, driver.Kernel{Run: maxPoolBackward, Mixed: true})
}

// pool is struct Pool of maxpool.cu. F: kernel, stride, padding.
func pool(f []float64, image, result *driver.Array) (p []uint64) {
	n, h, w := images(image.Shape)
	_, oh, ow := images(result.Shape)
	for _, v := range []int{n, h, w, oh, ow, int(f[0]), int(f[1]), int(f[2])} {
		p = append(p, uint64(v))
	}
	return p
}

// maxPool: x; writes y and, as uint8 or int32, places row-major in the window. F: kernel,
// stride, padding.
func maxPool(a *driver.Args) {
	x, y, at := &a.In[0], &a.Out[0], &a.Out[1]
	grid, block := elements(y.Len())
	launch(a, "maxpool", "max_pool"+suffixes[x.Type]+suffixes[at.Type], grid, block, 0, pool(a.F, x, y), x, y, at)
}

// maxPoolBackward: dy, places; writes dx. F as forward.
func maxPoolBackward(a *driver.Args) {
	dy, at, dx := &a.In[0], &a.In[1], &a.Out[0]
	grid, block := elements(dx.Len())
	launch(a, "maxpool", "max_pool_backward"+suffixes[dy.Type]+suffixes[at.Type], grid, block, 0, pool(a.F, dx, dy), dy, at, dx)
}
