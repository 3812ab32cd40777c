package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("group norm", floats, driver.Kernel{Run: groupNorm, Strided: true, Mixed: true})
	register("group norm backward", floats, driver.Kernel{
		Run: groupNormBackward, Strided: true, Mixed: true,
		Workspace: func(a *driver.Args) int64 { return sumBytes(channels(a.In[0].Shape)) },
	})
}

// rowBlock is a block for rows of so many elements: some for each thread.
func rowBlock(width int) [3]int {
	size := 32
	for size < threads && size*4 < width {
		size *= 2
	}
	return [3]int{size, 1, 1}
}

// groupNorm: x [n c …], weight, bias [c]; writes y, mean and 1/√(variance + eps) [rows].
// F: groups, eps. Layer normalization is that of one group, with one element a channel.
func groupNorm(a *driver.Args) {
	x, y := &a.In[0], &a.Out[0]
	n, c, inner := channels(x.Shape)
	count := int(a.F[0])
	if n*count == 0 {
		return
	}
	per, shape := c/count, []int{c}
	launch(a, "groupnorm", "group_norm"+access(x, y), [3]int{n * count, 1, 1}, rowBlock(per*inner), 0,
		operandOf(x, x.Shape), operandOf(&a.In[1], shape), operandOf(&a.In[2], shape), operandOf(y, x.Shape),
		&a.Out[1], &a.Out[2], count, per, inner, a.F[1])
}

// groupNormBackward: x, weight, mean, inverse, dy; writes dx, dweight, dbias. F: groups.
func groupNormBackward(a *driver.Args) {
	x, dy, dx := &a.In[0], &a.In[4], &a.Out[0]
	n, c, inner := channels(x.Shape)
	if c == 0 {
		return
	}
	count := int(a.F[0])
	per, shape, rows := c/count, []int{c}, []int{n * count}
	ox, ody, mean, inverse := operandOf(x, x.Shape), operandOf(dy, x.Shape), operandOf(&a.In[2], rows), operandOf(&a.In[3], rows)
	if x.Len() > 0 {
		launch(a, "groupnorm", "group_norm_backward"+access(x, dy, dx), [3]int{n * count, 1, 1}, rowBlock(per*inner), 0,
			ox, operandOf(&a.In[1], shape), mean, inverse, ody, operandOf(dx, x.Shape), count, per, inner)
	}
	grid, block, parts := channelGrid(n, c, inner, 1)
	launch(a, "groupnorm", "group_norm_sums"+access(x, dy), grid, block, 0, ox, mean, inverse, ody, n, c, inner, count, a.Work)
	launch(a, "groupnorm", "group_norm_parameters", line(c, threads), [3]int{threads, 1, 1}, 0,
		c, a.Work, parts, operandOf(&a.Out[1], shape), operandOf(&a.Out[2], shape))
}
