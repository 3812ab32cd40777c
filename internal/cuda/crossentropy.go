package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	mixed := func(name string, types []driver.DType, target int, run func(*driver.Args)) {
		register(name, types, driver.Kernel{Mixed: true, Run: run, Workspace: func(a *driver.Args) int64 {
			return int64(8 * (a.In[target].Len() + classParts + 1))
		}})
	}
	mixed("class count", []driver.DType{driver.Int64, driver.Int32, driver.Uint8}, 0, classCount)
	mixed("cross entropy", floats, 1, crossEntropy)
	mixed("cross entropy backward", floats, 1, crossEntropyBackward)
	mixed("nll", floats, 1, nll)
	mixed("nll backward", []driver.DType{driver.Float32, driver.Float64}, 1, nllBackward)
	mixed("correct", floats, 1, correct)
}

// classParts is how many blocks leave sums of their rows at most.
const classParts = 1024

// classes writes the class of each target, or that it is one of those that do not count,
// to the beginning of the workspace, and gives that and the rest of it.
func classes(a *driver.Args, target *driver.Array, ignored []float64) (class, rest []byte) {
	rows := target.Len()
	for first := true; first || len(ignored) > 0; first = false {
		now := ignored[:min(7, len(ignored))]
		ignored = ignored[len(now):]
		words := make([]uint64, 8)
		words[0] = uint64(len(now))
		for i, f := range now {
			words[i+1] = f64bits(f)
		}
		launch(a, "crossentropy", "crossentropyclasses"+suffixes[target.Type], line(rows, threads), [3]int{threads, 1, 1}, 0,
			rows, target, words, first, a.Work)
	}
	return a.Work[:8*rows], a.Work[8*rows:]
}

// input is the one at i, or nil.
func input(a *driver.Args, i int) *driver.Array {
	if i < len(a.In) {
		return &a.In[i]
	}
	return nil
}

// kept is what a loss is divided by, nil if that is nothing.
func kept(a *driver.Args) *driver.Array {
	if a.F[1] != 0 {
		return nil
	}
	return &a.In[2]
}

func lastDim(a *driver.Array) int { return a.Shape[len(a.Shape)-1] }

// classCount: target and the classes' weights, if they have some. It writes the sum of the
// weights of all rows that count, and 1 and the first target that is no class, or zeros.
// F: the number of classes, then the targets that do not count.
func classCount(a *driver.Args) {
	class, _ := classes(a, &a.In[0], a.F[1:])
	launch(a, "crossentropy", "crossentropycount", line(1, 1), [3]int{threads, 1, 1}, 0,
		a.In[0].Len(), int(a.F[0]), class, input(a, 1), &a.Out[0], &a.Out[1])
}

// crossEntropy: logits, target, kept, weight; writes the loss and each row's ln Σeˣ. F:
// label smoothing, whether it is a sum, targets that do not count.
func crossEntropy(a *driver.Args) {
	x, rows, n := &a.In[0], a.In[1].Len(), lastDim(&a.In[0])
	class, parts := classes(a, &a.In[1], a.F[2:])
	kind, grid, block := teams(rows, n, 1)
	grid[0] = min(grid[0], classParts)
	launch(a, "crossentropy", "crossentropy"+kind+suffixes[x.Type], grid, block, 0,
		rows, n, a.F[0], x, class, input(a, 3), &a.Out[1], parts)
	lossTotal(a, grid[0], parts, 1, kept(a))
}

// rowBlocks is a grid for rows on each of which wide threads of a block work.
func rowBlocks(rows, wide int) [3]int { return line(min(rows, 1<<20), threads/wide) }

// crossEntropyBackward: logits, target, kept, each row's ln Σeˣ, dy, weight; F as forward.
func crossEntropyBackward(a *driver.Args) {
	x, weight, rows, n := &a.In[0], input(a, 5), a.In[1].Len(), lastDim(&a.In[0])
	class, sum := classes(a, &a.In[1], a.F[2:])
	if weight == nil {
		sum = nil
	} else {
		launch(a, "crossentropy", "crossentropyweights", line(1, 1), [3]int{threads, 1, 1}, 0, n, weight, sum)
	}
	wide := abreast(n)
	launch(a, "crossentropy", "crossentropyback"+suffixes[x.Type], rowBlocks(rows, wide), [3]int{threads, 1, 1}, 0,
		rows, n, wide, a.F[0], a.F[1] != 0, x, class, weight, sum, &a.In[2], &a.In[3], &a.In[4], &a.Out[0])
}

// nll: logarithms of probabilities, target, kept. F: unused, whether it is a sum, targets
// that do not count.
func nll(a *driver.Args) {
	x, rows := &a.In[0], a.In[1].Len()
	class, parts := classes(a, &a.In[1], a.F[2:])
	blocks := min(lossBlocks(rows), classParts)
	launch(a, "crossentropy", "nll"+suffixes[x.Type], line(blocks, 1), [3]int{threads, 1, 1}, 0, rows, lastDim(x), x, class, parts)
	lossTotal(a, blocks, parts, 1, kept(a))
}

// nllBackward: dy, target, kept; F as forward.
func nllBackward(a *driver.Args) {
	out, rows, n := &a.Out[0], a.In[1].Len(), lastDim(&a.Out[0])
	class, _ := classes(a, &a.In[1], a.F[2:])
	wide := abreast(n)
	launch(a, "crossentropy", "nllback"+suffixes[out.Type], rowBlocks(rows, wide), [3]int{threads, 1, 1}, 0,
		rows, n, wide, a.F[1] != 0, &a.In[0], class, &a.In[2], out)
}

// correct: logits, target; writes how many rows have their first largest logit at the
// target, as a float64. A NaN is the largest of all.
func correct(a *driver.Args) {
	x, rows, n := &a.In[0], a.In[1].Len(), lastDim(&a.In[0])
	class, parts := classes(a, &a.In[1], nil)
	kind, grid, block := teams(rows, n, 1)
	grid[0] = min(grid[0], classParts)
	launch(a, "crossentropy", "crossentropyright"+kind+suffixes[x.Type], grid, block, 0, rows, n, x, class, parts)
	lossTotal(a, grid[0], parts, 1, nil)
}
