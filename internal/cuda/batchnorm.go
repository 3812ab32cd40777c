package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	norm := func(name string, run func(*driver.Args), work func(*driver.Args) int64) {
		register(name, floats, driver.Kernel{Run: run, Workspace: work, Strided: true, Mixed: true})
	}
	norm("mean variance", meanVariance, func(a *driver.Args) int64 { return sumBytes(channels(a.In[0].Shape)) })
	norm("batch norm", batchNorm, func(a *driver.Args) int64 { return tableBytes(a.In[0].Shape[1]) })
	norm("batch norm backward", batchNormBackward, func(a *driver.Args) int64 {
		return tableBytes(a.In[0].Shape[1]) + sumBytes(channels(a.In[0].Shape))
	})
	register("count", []driver.DType{driver.Int64}, driver.Kernel{Run: countUp})
}

// tableBytes is what a table of struct Channel in batchnorm.cu takes, of float64 at most.
func tableBytes(c int) int64 { return int64(c*48+255) &^ 255 }

// meanVariance of each channel of x [n c …], biased.
func meanVariance(a *driver.Args) {
	x := &a.In[0]
	n, c, inner := channels(x.Shape)
	if c == 0 {
		return
	}
	o := operandOf(x, x.Shape)
	suffix, few := accessFew(inner, x)
	grid, block, parts := channelGrid(n, c, inner, few)
	launch(a, "batchnorm", "mean_sums"+suffix, grid, block, 0, o, n, c, inner, a.Work)
	launch(a, "batchnorm", "mean_variance"+accSuffix(x.Type), line(c, threads), [3]int{threads, 1, 1}, 0,
		o, n, c, inner, a.Work, parts, &a.Out[0], &a.Out[1])
}

// normTable writes what is known of each channel to work, from mean, variance, weight and
// bias.
func normTable(a *driver.Args, c int, work []byte) {
	shape := []int{c}
	launch(a, "batchnorm", "batch_norm_table"+accSuffix(a.In[0].Type), line(c, threads), [3]int{threads, 1, 1}, 0,
		c, operandOf(&a.In[1], shape), operandOf(&a.In[2], shape), operandOf(&a.In[3], shape), operandOf(&a.In[4], shape), a.F[0], work)
}

// batchNorm: x [n c …], mean, variance, weight, bias [c], and what is added, if anything.
// F: eps, and the most that max(0, ·) may be, 0 for none of it.
func batchNorm(a *driver.Args) {
	x, y, add := &a.In[0], &a.Out[0], optional(a.In, 5)
	if x.Len() == 0 {
		return
	}
	n, c, inner := channels(x.Shape)
	normTable(a, c, a.Work)
	suffix, few := accessFew(inner, x, y, add)
	grid, block := elements(x.Len() / few)
	launch(a, "batchnorm", "batch_norm"+suffix, grid, block, 0,
		operandOf(x, x.Shape), operandOf(add, x.Shape), operandOf(y, x.Shape), n, c, inner, a.Work, a.F[1])
}

// batchNormBackward: x, mean, variance, weight, bias, dy, and what was added, if anything;
// writes dx, dweight, dbias and, if it is wanted, the gradient of what was added. F: eps, the
// most as forward, 1 where mean and variance are x's own.
func batchNormBackward(a *driver.Args) {
	x, dy, add, dx, dadd := &a.In[0], &a.In[5], optional(a.In, 6), &a.Out[0], optional(a.Out, 3)
	n, c, inner := channels(x.Shape)
	if c == 0 {
		return
	}
	table, sums := a.Work, a.Work[tableBytes(c):]
	normTable(a, c, table)
	ox, oadd, ody := operandOf(x, x.Shape), operandOf(add, x.Shape), operandOf(dy, x.Shape)
	suffix, few := accessFew(inner, x, add, dy)
	grid, block, parts := channelGrid(n, c, inner, few)
	launch(a, "batchnorm", "batch_norm_sums"+suffix, grid, block, 0, ox, oadd, ody, n, c, inner, table, a.F[1], sums)
	launch(a, "batchnorm", "batch_norm_channels"+accSuffix(x.Type), line(c, threads), [3]int{threads, 1, 1}, 0,
		max(1, n*inner), c, sums, parts, a.F[2] != 0, table, operandOf(&a.Out[1], []int{c}), operandOf(&a.Out[2], []int{c}))
	if x.Len() == 0 {
		return
	}
	suffix, few = accessFew(inner, x, add, dy, dx, dadd)
	grid, block = elements(x.Len() / few)
	launch(a, "batchnorm", "batch_norm_backward"+suffix, grid, block, 0,
		ox, oadd, ody, operandOf(dx, x.Shape), operandOf(dadd, x.Shape), n, c, inner, table, a.F[1])
}

// countUp: an int64; writes the next.
func countUp(a *driver.Args) {
	launch(a, "batchnorm", "count", [3]int{1, 1, 1}, [3]int{1, 1, 1}, 0, &a.In[0], &a.Out[0])
}
