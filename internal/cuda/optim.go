package cuda

import (
	"cmp"
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

func init() {
	optimizer("sgd", asGiven)
	optimizer("sgd momentum", asGiven)
	optimizer("adam", adamNumbers)
	optimizer("adagrad", asGiven)
	optimizer("adadelta", func(f []float64) []float64 { return []float64{f[0], f[1], f[2], 1 - f[2], f[3]} })
	optimizer("nadam", func(f []float64) []float64 {
		return []float64{f[0], f[1], 1 - f[2], f[3], 1 - f[3], f[4], f[5], 1 / math.Sqrt(f[6])}
	})
	optimizer("adamax", func(f []float64) []float64 { return []float64{f[0], f[1], 1 - f[2], f[3], f[4]} })
	rule{name: "rmsprop", numbers: func(f []float64) []float64 {
		return []float64{f[0], f[1], f[2], 1 - f[2], f[3], f[4], f[5]}
	}, states: func(a *driver.Args) (s [3]*driver.Array) { // it has a momentum and a mean where F asks for them
		next := a.Out[2:]
		s[0] = &a.Out[1]
		if a.F[4] != 0 {
			s[1], next = &next[0], next[1:]
		}
		if a.F[5] != 0 {
			s[2] = &next[0]
		}
		return s
	}}.register(floats)
}

func asGiven(f []float64) []float64 { return f }

func adamNumbers(f []float64) []float64 {
	return []float64{f[0] / f[5], f[1], 1 - f[2], f[3], 1 - f[3], f[4], 1 / math.Sqrt(f[6]), 1 - f[0]*f[7]}
}

// optimizer registers a rule with its states in order.
func optimizer(name string, numbers func(f []float64) []float64) {
	rule{name: name, numbers: numbers, states: func(a *driver.Args) (s [3]*driver.Array) {
		for i := range a.Out[1:] {
			s[i] = &a.Out[1+i]
		}
		return s
	}}.register(floats)
}

// rule is one of kernels/optim.cu. In: the gradient; out: weights and states. numbers are
// made of F, whose order the host's kernel gives.
type rule struct {
	name    string
	numbers func(f []float64) []float64
	states  func(a *driver.Args) [3]*driver.Array
}

func (r rule) register(types []driver.DType) {
	steps := stepping{module: "optim", most: 60, numbers: r.numbers}
	steps.entry = func(a *driver.Args) (string, []*driver.Array) {
		w := a.Out[0].Type
		state := driver.Float32 // their type, if there are any
		if w == driver.Float64 {
			state = driver.Float64
		}
		operands := []*driver.Array{&a.In[0], &a.Out[0]}
		for _, s := range r.states(a) {
			if operands = append(operands, s); s != nil {
				state = s.Type
			}
		}
		return function(r.name, w) + suffixes[state], operands
	}
	steps.register(r.name, types)
}

// stepping is a step of any number of parameters. numbers are the kernel's, and an entry of
// its table begins with the addresses of operands, of which all that are there begin at
// multiples of 16 bytes, or the entry says that they do not.
type stepping struct {
	module  string
	most    int // entries of the table
	numbers func(f []float64) []float64
	entry   func(a *driver.Args) (function string, operands []*driver.Array)
}

func (s *stepping) register(name string, types []driver.DType) {
	register(name, types, driver.Kernel{Scaled: true, Group: s.run, Run: func(a *driver.Args) { s.run([]*driver.Args{a}) }})
}

// alike is what parameters have in common that one launch steps.
type alike struct {
	function string
	tick     uint64
	scale    float64
	numbers  [8]float64
}

// run launches a kernel for all that are alike, as far as they have room in one table.
func (s *stepping) run(as []*driver.Args) {
	const chunk = 4096 // elements that a block takes
	what := func(a *driver.Args) (c alike, operands []*driver.Array) {
		c = alike{tick: a.Key[1], scale: cmp.Or(a.Scale, 1)}
		copy(c.numbers[:], s.numbers(a.F))
		c.function, operands = s.entry(a)
		return c, operands
	}
	done := make([]bool, len(as))
	for i, a := range as {
		if done[i] {
			continue
		}
		c, operands := what(a)
		t := newTable(s.most, len(operands)+3)
		flush := func() {
			if t.blocks > 0 {
				run(a, s.module, c.function, [3]int{t.blocks, 1, 1}, t.all(), c.tick, c.scale, words(c.numbers[:]))
			}
			t.clear()
		}
		for j, b := range as[i:] {
			if done[i+j] {
				continue
			}
			o, operands := what(b)
			if j > 0 && o != c {
				continue
			}
			done[i+j] = true
			if n := b.Out[0].Len(); n > 0 {
				t.add((n+chunk-1)/chunk, aligned(operands), append(addresses(operands...), uint64(n)), b.Key[0])
			}
			if t.full() {
				flush()
			}
		}
		flush()
		t.give()
	}
}

// words are struct Numbers of optim.cu.
func words(numbers []float64) []uint64 {
	w := make([]uint64, 8)
	for i, x := range numbers {
		w[i] = f64bits(x)
	}
	return w
}
