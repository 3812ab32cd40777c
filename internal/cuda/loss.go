package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	for _, name := range []string{"mse", "l1", "smooth l1", "bce", "kl"} {
		kernel := name
		if name == "smooth l1" {
			kernel = "smoothl1"
		}
		register(name, floats, driver.Kernel{Mixed: true, Run: func(a *driver.Args) { pairLoss(a, kernel) }, Workspace: func(a *driver.Args) int64 {
			return int64(8 * lossBlocks(a.In[0].Len()))
		}})
		register(name+" backward", floats, driver.Kernel{Mixed: true, Run: func(a *driver.Args) { pairGrad(a, kernel) }})
	}
}

// lossBlocks is how many blocks share out n elements, each with a part of the sum. It
// depends on n alone, as the order of additions does.
func lossBlocks(n int) int { return max(1, min((n+4*threads-1)/(4*threads), 1024)) }

// lossTotal writes the parts' sum, times by or, with kept, divided by what that says.
func lossTotal(a *driver.Args, parts int, work []byte, by float64, kept *driver.Array) {
	launch(a, "loss", "losstotal"+suffixes[a.Out[0].Type], line(1, 1), [3]int{threads, 1, 1}, 0, parts, work, by, kept, &a.Out[0])
}

// pairLoss: x, y. F: a factor, unused, a number of the loss.
func pairLoss(a *driver.Args, kernel string) {
	x, y := &a.In[0], &a.In[1]
	n := x.Len()
	blocks := lossBlocks(n)
	launch(a, "loss", kernel+suffixes[wide(x.Type)], line(blocks, 1), [3]int{threads, 1, 1}, 0,
		n, a.F[2], operandOf(x, x.Shape), operandOf(y, x.Shape), a.Work)
	lossTotal(a, blocks, a.Work, a.F[0], nil)
}

// pairGrad: x, y, dy; writes the gradient of x or, if F[1] is not 0, that of y. F as forward.
func pairGrad(a *driver.Args, kernel string) {
	x, y, out := &a.In[0], &a.In[1], &a.Out[0]
	if n := x.Len(); n > 0 {
		launch(a, "loss", kernel+"back"+suffixes[wide(x.Type)], line(min(n, 1<<20), threads), [3]int{threads, 1, 1}, 0,
			n, a.F[2], a.F[1] != 0, a.F[0], operandOf(x, x.Shape), operandOf(y, x.Shape), &a.In[2], operandOf(out, x.Shape))
	}
}
