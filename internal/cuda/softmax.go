package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	softmax := func(name, kernel string, logs bool) {
		register(name, floats, driver.Kernel{Run: func(a *driver.Args) { runSoftmax(a, kernel, logs) }})
	}
	softmax("softmax", "softmax", false)
	softmax("log softmax", "softmax", true)
	softmax("softmax backward", "softmaxback", false)
	softmax("log softmax backward", "softmaxback", true)
}

// runSoftmax starts a kernel on the lanes of its inputs and its output, all of one shape.
// F: n elements a lane, inner apart.
func runSoftmax(a *driver.Args, kernel string, logs bool) {
	n, inner, out := int(a.F[0]), int(a.F[1]), &a.Out[0]
	if out.Len() == 0 {
		return
	}
	count := out.Len() / n
	kind, grid, block := teams(count, n, inner)
	params := []any{count, n, inner, logs}
	for i := range a.In {
		params = append(params, &a.In[i])
	}
	launch(a, "softmax", kernel+kind+suffixes[out.Type], grid, block, 0, append(params, out)...)
}
