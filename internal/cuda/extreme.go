package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("max", floats, driver.Kernel{Run: func(a *driver.Args) { extreme(a, 1) }})
	register("min", floats, driver.Kernel{Run: func(a *driver.Args) { extreme(a, -1) }})
	register("extreme backward", floats, driver.Kernel{Mixed: true, Run: extremeBackward})
}

// extreme gives the greatest element of each row, times sign, and where it is; F: n, inner.
func extreme(a *driver.Args, sign int32) {
	x, out, where := &a.In[0], &a.Out[0], &a.Out[1]
	n, inner, rows := int(a.F[0]), int(a.F[1]), out.Len()
	if rows == 0 || n == 0 {
		return
	}
	d := newReduction(rows, n, inner > 1)
	run(a, "extreme", function("extreme", x.Type), line(rows, threads/d.lanes),
		rows, n, inner, int32(d.lanes), int32(d.step), sign, x, out, operandOf(where, where.Shape))
}

// extremeBackward: dy, index; F: n, inner.
func extremeBackward(a *driver.Args) {
	dy, dx := &a.In[0], &a.Out[0]
	count := dx.Len()
	if count == 0 {
		return
	}
	run(a, "extreme", function("extreme backward", dy.Type), spread(count, 1), count, int(a.F[0]), int(a.F[1]), dy, &a.In[1], dx)
}
