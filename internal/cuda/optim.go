package cuda

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

func init() {
	optimizer("sgd", func(f []float64) []float64 { return f })
	optimizer("sgd momentum", func(f []float64) []float64 { return f })
	optimizer("adam", adamNumbers)
	optimizer("adagrad", func(f []float64) []float64 { return f })
	optimizer("adadelta", func(f []float64) []float64 { return []float64{f[0], f[1], f[2], 1 - f[2], f[3]} })
	optimizer("nadam", func(f []float64) []float64 {
		return []float64{f[0], f[1], 1 - f[2], f[3], 1 - f[3], f[4], f[5], 1 / math.Sqrt(f[6])}
	})
	optimizer("adamax", func(f []float64) []float64 { return []float64{f[0], f[1], 1 - f[2], f[3], f[4]} })
	register("rmsprop", floats, driver.Kernel{Run: rmsprop})
}

func adamNumbers(f []float64) []float64 {
	return []float64{f[0] / f[5], f[1], 1 - f[2], f[3], 1 - f[3], f[4], 1 / math.Sqrt(f[6]), 1 - f[0]*f[7]}
}

// optimizer registers a rule of kernels/optim.cu. In: the gradient; out: weights and
// states. numbers are made of F, whose order the host's kernel gives.
func optimizer(name string, numbers func(f []float64) []float64) {
	register(name, floats, driver.Kernel{Run: func(a *driver.Args) {
		var states [3]*driver.Array
		for i := range a.Out[1:] {
			states[i] = &a.Out[1+i]
		}
		step(a, name, numbers(a.F), states)
	}})
}

// rmsprop has a momentum and a mean where F asks for them.
func rmsprop(a *driver.Args) {
	f, next := a.F, a.Out[2:]
	states := [3]*driver.Array{&a.Out[1]}
	if f[4] != 0 {
		states[1], next = &next[0], next[1:]
	}
	if f[5] != 0 {
		states[2] = &next[0]
	}
	step(a, "rmsprop", []float64{f[0], f[1], f[2], 1 - f[2], f[3], f[4], f[5]}, states)
}

func step(a *driver.Args, name string, numbers []float64, states [3]*driver.Array) {
	g, w := &a.In[0], &a.Out[0]
	state := driver.Float32 // their type, if there are any
	if w.Type == driver.Float64 {
		state = driver.Float64
	}
	operands := []*driver.Array{w, g}
	for _, s := range states {
		if s != nil {
			operands, state = append(operands, s), s.Type
		}
	}
	n := w.Len()
	run(a, "optim", function(name, w.Type)+suffixes[state], spread(n, 4),
		n, dense(operands...), a.Key[:], words(numbers), g, w, states[0], states[1], states[2])
}

// words are struct Numbers of optim.cu.
func words(numbers []float64) []uint64 {
	w := make([]uint64, 8)
	for i, x := range numbers {
		w[i] = f64bits(x)
	}
	return w
}
