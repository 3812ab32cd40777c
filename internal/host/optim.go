package host

import (
	"math"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	optimizer("sgd", sgd[float32], sgd[float64])
	optimizer("sgd momentum", sgdMomentum[float32], sgdMomentum[float64])
	optimizer("adam", adam[float32], adam[float64])
	optimizer("rmsprop", rmsprop[float32], rmsprop[float64])
	optimizer("adagrad", adagrad[float32], adagrad[float64])
	optimizer("adadelta", adadelta[float32], adadelta[float64])
	optimizer("nadam", nadam[float32], nadam[float64])
	optimizer("adamax", adamax[float32], adamax[float64])
}

// states are the arrays that a step changes beside the weights.
type states[T number] [4][]T

// optimizer registers a step over runs of weights w, gradients g and states s. 16-bit
// values pass through a buffer, so that a step needs no memory of the device.
func optimizer(name string, f32 step[float32], f64 step[float64]) {
	k := updates(f32)
	driver.Register(name, driver.Float32, backend, k)
	driver.Register(name, driver.BFloat16, backend, k)
	driver.Register(name, driver.Float16, backend, k)
	driver.Register(name, driver.Float64, backend, updates(f64))
}

type step[T number] func(f []float64, w, g []T, s *states[T])

func updates[T number](f step[T]) driver.Kernel {
	buffers := &sync.Pool{New: func() any { return new([6][chunk]T) }}
	return driver.Kernel{Run: func(a *driver.Args) {
		n := 1 + len(a.Out) // gradient, weights, states
		var read [6]func(buf []T, lo, hi int) []T
		var write [6]func(v []T, at int)
		for i := range n {
			if read[i] = inStep[T](a, i); i > 0 {
				write[i] = outStep[T](a, i)
			}
		}
		par.Range(a.Threads, a.In[0].Len(), grain, func(lo, hi int) {
			buf := buffers.Get().(*[6][chunk]T)
			defer buffers.Put(buf)
			for at := lo; at < hi; at += chunk {
				end := min(at+chunk, hi)
				var v [6][]T
				for i := range n {
					v[i] = read[i](buf[i][:], at, end)
				}
				f(a.F, v[1], v[0], (*states[T])(v[2:]))
				for i := range n {
					if write[i] != nil {
						write[i](v[i], at)
					}
				}
			}
		})
	}}
}

// F: rate, decay.
func sgd[T float32 | float64](f []float64, w, g []T, _ *states[T]) {
	rate, decay := T(f[0]), T(f[1])
	g = g[:len(w)]
	for i := range w {
		w[i] -= rate * (g[i] + decay*w[i])
	}
}

// F: rate, decay, momentum, 1 − dampening, Nesterov. State: momentum.
func sgdMomentum[T float32 | float64](f []float64, w, g []T, s *states[T]) {
	rate, decay, mu, damp, nesterov := T(f[0]), T(f[1]), T(f[2]), T(f[3]), f[4] != 0
	m := s[0][:len(w)]
	g = g[:len(w)]
	if w, ok := any(w).([]float32); ok && damp == 1 && !nesterov {
		kern.SGDRow(w, any(g).([]float32), any(m).([]float32), &kern.SGD{Rate: float32(rate), Momentum: float32(mu), Decay: float32(decay)})
		return
	}
	for i := range w {
		d := g[i] + decay*w[i]
		v := mu*m[i] + damp*d
		m[i] = v
		if nesterov {
			v = d + mu*v
		}
		w[i] -= rate * v
	}
}

// F: rate, decay of the gradient, β1, β2, ε, 1 − β1ᵗ, 1 − β2ᵗ, decay of the weights.
// States: mean, square and, for AMSGrad, the largest square.
func adam[T float32 | float64](f []float64, w, g []T, s *states[T]) {
	decay, b2, eps := T(f[1]), T(f[3]), T(f[4])
	part1, part2 := T(1-f[2]), T(1-f[3])
	size, root := T(f[0]/f[5]), T(1/math.Sqrt(f[6]))
	keep := T(1 - f[0]*f[7])
	m, v := s[0][:len(w)], s[1][:len(w)]
	g = g[:len(w)]
	if w, ok := any(w).([]float32); ok && decay == 0 && s[2] == nil {
		kern.AdamWRow(w, any(g).([]float32), any(m).([]float32), any(v).([]float32), &kern.AdamW{
			Beta1: float32(f[2]), Beta2: float32(f[3]), Keep: float32(keep), Step: float32(size), Root: float32(root), Eps: float32(eps),
		})
		return
	}
	for i := range w {
		x := w[i] * keep
		d := g[i] + decay*x
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
func rmsprop[T float32 | float64](f []float64, w, g []T, s *states[T]) {
	rate, decay, alpha, eps, mu, centered := T(f[0]), T(f[1]), T(f[2]), T(f[3]), T(f[4]), f[5] != 0
	part := T(1 - f[2])
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
		d := g[i] + decay*w[i]
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
func adagrad[T float32 | float64](f []float64, w, g []T, s *states[T]) {
	rate, decay, eps := T(f[0]), T(f[1]), T(f[2])
	for i := range w {
		d := g[i] + decay*w[i]
		s[0][i] += d * d
		w[i] -= rate * d / (sqrt(s[0][i]) + eps)
	}
}

// F: rate, decay, ρ, ε. States: squares of gradients and of changes.
func adadelta[T float32 | float64](f []float64, w, g []T, s *states[T]) {
	rate, decay, rho, eps := T(f[0]), T(f[1]), T(f[2]), T(f[3])
	part := T(1 - f[2])
	v, u := s[0], s[1]
	for i := range w {
		d := g[i] + decay*w[i]
		v[i] = rho*v[i] + part*d*d
		d *= sqrt(u[i]+eps) / sqrt(v[i]+eps)
		u[i] = rho*u[i] + part*d*d
		w[i] -= rate * d
	}
}

// F: rate on the gradient, decay, β1, β2, ε, rate on the mean, 1 − β2ᵗ. States: mean,
// square.
func nadam[T float32 | float64](f []float64, w, g []T, s *states[T]) {
	onGrad, decay, b2, eps, onMean, root := T(f[0]), T(f[1]), T(f[3]), T(f[4]), T(f[5]), T(1/math.Sqrt(f[6]))
	part1, part2 := T(1-f[2]), T(1-f[3])
	m, v := s[0], s[1]
	for i := range w {
		d := g[i] + decay*w[i]
		m[i] += part1 * (d - m[i])
		v[i] = b2*v[i] + part2*d*d
		w[i] -= (onGrad*d + onMean*m[i]) / (sqrt(v[i])*root + eps)
	}
}

// F: rate/(1 − β1ᵗ), decay, β1, β2, ε. States: mean, largest.
func adamax[T float32 | float64](f []float64, w, g []T, s *states[T]) {
	rate, decay, part, b2, eps := T(f[0]), T(f[1]), T(1-f[2]), T(f[3]), T(f[4])
	m, u := s[0], s[1]
	for i := range w {
		d := g[i] + decay*w[i]
		m[i] += part * (d - m[i])
		u[i] = max(b2*u[i], abs(d)+eps)
		w[i] -= rate * m[i] / u[i]
	}
}

func sqrt[T float32 | float64](x T) T { return T(math.Sqrt(float64(x))) }

func abs[T float32 | float64](x T) T { return T(math.Abs(float64(x))) }
