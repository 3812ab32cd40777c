package host

import (
	"math"
	"slices"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	always := func(r kern.Rule) chooser { return func([]float64, int) kern.Rule { return r } }
	optimizer("sgd", asGiven, sgd[float32], sgd[float64], always(kern.SGD))
	optimizer("sgd momentum", asGiven, momentum[float32], momentum[float64], func(f []float64, _ int) kern.Rule {
		if f[4] != 0 {
			return kern.Nesterov
		}
		return kern.Momentum
	})
	optimizer("adam", adamNumbers, adam[float32], adam[float64], func(_ []float64, states int) kern.Rule {
		if states == 3 {
			return kern.AMSGrad
		}
		return kern.Adam
	})
	optimizer("rmsprop", func(f []float64) []float64 {
		return []float64{f[0], f[1], f[2], 1 - f[2], f[3], f[4], f[5]}
	}, rmsprop[float32], rmsprop[float64], func(f []float64, _ int) kern.Rule {
		switch {
		case f[4] != 0 && f[5] != 0:
			return kern.RMSpropCenteredMomentum
		case f[4] != 0:
			return kern.RMSpropMomentum
		case f[5] != 0:
			return kern.RMSpropCentered
		}
		return kern.RMSprop
	})
	optimizer("adagrad", asGiven, adagrad[float32], adagrad[float64], always(kern.Adagrad))
	optimizer("adadelta", func(f []float64) []float64 {
		return []float64{f[0], f[1], f[2], 1 - f[2], f[3]}
	}, adadelta[float32], adadelta[float64], always(kern.Adadelta))
	optimizer("nadam", func(f []float64) []float64 {
		return []float64{f[0], f[1], 1 - f[2], f[3], 1 - f[3], f[4], f[5], 1 / math.Sqrt(f[6])}
	}, nadam[float32], nadam[float64], always(kern.NAdam))
	optimizer("adamax", func(f []float64) []float64 {
		return []float64{f[0], f[1], 1 - f[2], f[3], f[4]}
	}, adamax[float32], adamax[float64], always(kern.Adamax))
}

// numbers are what a rule computes with, made of a kernel's in float64; the last one is what
// gradients are multiplied by.
type numbers[T number] [9]T

func newNumbers[T number](f []float64, scale float64) (c numbers[T]) {
	for i, v := range f {
		c[i] = T(v)
	}
	if c[8] = T(scale); scale == 0 {
		c[8] = 1
	}
	return c
}

func asGiven(f []float64) []float64 { return f }

// states are the arrays that a step changes beside the weights.
type states[T number] [4][]T

// step is a rule in Go, over runs of weights w, gradients g and states s.
type step[T number] func(c *numbers[T], w, g []T, s *states[T])

// chooser gives the same rule's vector code.
type chooser func(f []float64, states int) kern.Rule

// optimizer registers a step. 16-bit values pass through a buffer, so that a step needs no
// memory of the device.
func optimizer(name string, of func(f []float64) []float64, f32 step[float32], f64 step[float64], vector chooser) {
	k := updates(of, f32, vector)
	driver.Register(name, driver.Float32, backend, k)
	driver.Register(name, driver.BFloat16, backend, k)
	driver.Register(name, driver.Float16, backend, k)
	driver.Register(name, driver.Float64, backend, updates(of, f64, nil))
}

func updates[T float32 | float64](of func(f []float64) []float64, f step[T], vector chooser) driver.Kernel {
	// stepping is what a thread steps runs with: the gradient, weights and states, and
	// buffers for those that cannot be used where they are.
	type stepping struct {
		runs    [6][]T
		buffers [6][chunk]T
	}
	pool := &sync.Pool{New: func() any { return new(stepping) }}
	// one is a parameter's step.
	type one struct {
		c    numbers[T]
		rule kern.Rule
		n    int // of operands
		in   [6]stepOperand[T]
		run  int // how many elements are stepped at a time
	}
	all := func(as []*driver.Args) {
		ones := make([]one, len(as))
		for k, a := range as {
			p := &ones[k]
			p.c, p.n, p.run = newNumbers[T](of(a.F), a.Scale), 1+len(a.Out), grain
			if vector != nil {
				p.rule = vector(a.F, len(a.Out)-1)
			}
			for i := range p.n {
				if p.in[i] = newStepOperand[T](a, i); p.in[i].direct == nil {
					p.run = chunk
				}
			}
			p.in[0].scale = 0 // the rule multiplies
		}
		inParts(as, func(k, lo, hi int) {
			p := &ones[k]
			t := pool.Get().(*stepping)
			defer pool.Put(t)
			v := &t.runs
			for at := lo; at < hi; at += p.run {
				for i := range p.n {
					v[i] = p.in[i].read(t.buffers[i][:], at, min(at+p.run, hi))
				}
				if vector == nil || !p.rule.Run(f32(v[1]), f32(v[0]), f32(v[2]), f32(v[3]), f32(v[4]), f32(p.c[:])) {
					f(&p.c, v[1], v[0], (*states[T])(v[2:]))
				}
				for i := 1; i < p.n; i++ {
					p.in[i].write(v[i], at)
				}
			}
			clear(v[:])
		})
	}
	return driver.Kernel{Scaled: true, Group: all, Run: func(a *driver.Args) { all([]*driver.Args{a}) }}
}

// inParts cuts the first inputs of several arguments into parts of grain elements, each by
// itself, and calls fn for elements lo to hi of number k. Small ones do not wake a thread
// each.
func inParts(as []*driver.Args, fn func(k, lo, hi int)) {
	parts, elements := make([]int, len(as)), 0 // parts: how many up to here
	total := 0
	for k, a := range as {
		n := a.In[0].Len()
		elements += n
		total += (n + grain - 1) / grain
		parts[k] = total
	}
	threads := as[0].Threads
	if elements <= grain {
		threads = 1
	}
	par.For(threads, total, func(i int) {
		k, _ := slices.BinarySearch(parts, i+1)
		n := as[k].In[0].Len()
		lo := (i-parts[k])*grain + (n+grain-1)/grain*grain
		fn(k, lo, min(lo+grain, n))
	})
}

// F: rate, decay.
func sgd[T float32 | float64](c *numbers[T], w, g []T, _ *states[T]) {
	rate, decay := c[0], c[1]
	g = g[:len(w)]
	for i := range w {
		w[i] -= rate * (T(g[i]*c[8]) + decay*w[i])
	}
}

// F: rate, decay, momentum, 1 − dampening, Nesterov. State: momentum.
func momentum[T float32 | float64](c *numbers[T], w, g []T, s *states[T]) {
	rate, decay, mu, damp, nesterov := c[0], c[1], c[2], c[3], c[4] != 0
	m := s[0][:len(w)]
	g = g[:len(w)]
	for i := range w {
		d := T(g[i]*c[8]) + decay*w[i]
		v := mu*m[i] + damp*d
		m[i] = v
		if nesterov {
			v = d + mu*v
		}
		w[i] -= rate * v
	}
}

// adamNumbers are of F: rate, decay of the gradient, β1, β2, ε, 1 − β1ᵗ, 1 − β2ᵗ, decay of
// the weights.
func adamNumbers(f []float64) []float64 {
	return []float64{1 - f[2], f[3], 1 - f[3], f[1], f[0] / f[5], 1 / math.Sqrt(f[6]), f[4], 1 - f[0]*f[7]}
}

// States: mean, square and, for AMSGrad, the largest square.
func adam[T float32 | float64](c *numbers[T], w, g []T, s *states[T]) {
	part1, b2, part2, decay, size, root, eps, keep := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	m, v := s[0][:len(w)], s[1][:len(w)]
	g = g[:len(w)]
	for i := range w {
		x := w[i] * keep
		d := T(g[i]*c[8]) + decay*x
		m[i] += part1 * (d - m[i])
		v[i] = b2*v[i] + part2*d*d
		q := v[i]
		if s[2] != nil {
			q = max(s[2][i], q)
			s[2][i] = q
		}
		w[i] = x - size*m[i]/(sqrt(q)*root+eps)
	}
}

// F: rate, decay, α, ε, momentum, whether it is centered. States: square, momentum, mean.
func rmsprop[T float32 | float64](c *numbers[T], w, g []T, s *states[T]) {
	rate, decay, alpha, part, eps, mu, centered := c[0], c[1], c[2], c[3], c[4], c[5], c[6] != 0
	v := s[0]
	next := s[1:]
	var buf, mean []T
	if mu != 0 {
		buf, next = next[0], next[1:]
	}
	if centered {
		mean = next[0]
	}
	for i := range w {
		d := T(g[i]*c[8]) + decay*w[i]
		v[i] = alpha*v[i] + part*d*d
		q := v[i]
		if centered {
			mean[i] += part * (d - mean[i])
			q -= mean[i] * mean[i]
		}
		d /= sqrt(q) + eps
		if mu != 0 {
			d += mu * buf[i]
			buf[i] = d
		}
		w[i] -= rate * d
	}
}

// F: rate, decay, ε. State: sum of squares.
func adagrad[T float32 | float64](c *numbers[T], w, g []T, s *states[T]) {
	rate, decay, eps := c[0], c[1], c[2]
	for i := range w {
		d := T(g[i]*c[8]) + decay*w[i]
		s[0][i] += d * d
		w[i] -= rate * d / (sqrt(s[0][i]) + eps)
	}
}

// F: rate, decay, ρ, ε. States: squares of gradients and of changes.
func adadelta[T float32 | float64](c *numbers[T], w, g []T, s *states[T]) {
	rate, decay, rho, part, eps := c[0], c[1], c[2], c[3], c[4]
	v, u := s[0], s[1]
	for i := range w {
		d := T(g[i]*c[8]) + decay*w[i]
		v[i] = rho*v[i] + part*d*d
		d *= sqrt(u[i]+eps) / sqrt(v[i]+eps)
		u[i] = rho*u[i] + part*d*d
		w[i] -= rate * d
	}
}

// F: rate on the gradient, decay, β1, β2, ε, rate on the mean, 1 − β2ᵗ. States: mean,
// square.
func nadam[T float32 | float64](c *numbers[T], w, g []T, s *states[T]) {
	onGrad, decay, part1, b2, part2, eps, onMean, root := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	m, v := s[0], s[1]
	for i := range w {
		d := T(g[i]*c[8]) + decay*w[i]
		m[i] += part1 * (d - m[i])
		v[i] = b2*v[i] + part2*d*d
		w[i] -= (onGrad*d + onMean*m[i]) / (sqrt(v[i])*root + eps)
	}
}

// F: rate/(1 − β1ᵗ), decay, β1, β2, ε. States: mean, largest.
func adamax[T float32 | float64](c *numbers[T], w, g []T, s *states[T]) {
	rate, decay, part, b2, eps := c[0], c[1], c[2], c[3], c[4]
	m, u := s[0], s[1]
	for i := range w {
		d := T(g[i]*c[8]) + decay*w[i]
		m[i] += part * (d - m[i])
		u[i] = max(b2*u[i], abs(d)+eps)
		w[i] -= rate * m[i] / u[i]
	}
}

func sqrt[T float32 | float64](x T) T { return T(math.Sqrt(float64(x))) }

func abs[T float32 | float64](x T) T { return T(math.Abs(float64(x))) }
