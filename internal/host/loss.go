package host

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	pairLoss("mse", mseSum[float32], mseGrad[float32], mseSum[float64], mseGrad[float64])
	pairLoss("l1", l1Sum[float32], l1Grad[float32], l1Sum[float64], l1Grad[float64])
	pairLoss("smooth l1", smoothL1Sum[float32], smoothL1Grad[float32], smoothL1Sum[float64], smoothL1Grad[float64])
	pairLoss("bce", bceSum[float32], bceGrad[float32], bceSum[float64], bceGrad[float64])
	pairLoss("kl", klSum[float32], klGrad[float32], klSum[float64], klGrad[float64])
}

// lossSum adds up a loss of x and y. f is the kernel's third number.
type lossSum[T float32 | float64] func(f float64, x, y []T) float64

// lossGrad gives it by x or, for the second side, by y, times d.
type lossGrad[T float32 | float64] func(f float64, second bool, d T, dst, x, y []T)

// pairLoss registers a loss over pairs of elements of any float types. F: a factor, and
// for the gradient, name + " backward", whether it is that of y. Its inputs are x, y, dy.
func pairLoss(name string, s32 lossSum[float32], g32 lossGrad[float32], s64 lossSum[float64], g64 lossGrad[float64]) {
	for t := driver.Float32; t.Float(); t++ {
		forward, back := pairSum(s32), pairGrad(g32)
		if t == driver.Float64 {
			forward, back = pairSum(s64), pairGrad(g64)
		}
		driver.Register(name, t, backend, driver.Kernel{Run: forward, Mixed: true})
		driver.Register(name+" backward", t, backend, driver.Kernel{Run: back, Mixed: true})
	}
}

func pairSum[T float32 | float64](sum lossSum[T]) func(*driver.Args) {
	return func(a *driver.Args) {
		x, y := reader[T](&a.In[0]), reader[T](&a.In[1])
		total := sumRows(a.Threads, a.In[0].Len(), 1, func(lo, hi int) (s float64) {
			var bx, by [chunk]T
			for ; lo < hi; lo += chunk {
				end := min(lo+chunk, hi)
				s += sum(a.F[2], x(bx[:], lo, end), y(by[:], lo, end))
			}
			return s
		})
		driver.Of[T](&a.Out[0])[0] = T(total * a.F[0])
	}
}

func pairGrad[T float32 | float64](grad lossGrad[T]) func(*driver.Args) {
	return func(a *driver.Args) {
		x, y := reader[T](&a.In[0]), reader[T](&a.In[1])
		out, direct := typed[T](&a.Out[0])
		write := store[T](&a.Out[0])
		d := T(float64(driver.Of[T](&a.In[2])[0]) * a.F[0])
		par.Range(a.Threads, a.In[0].Len(), grain, func(lo, hi int) {
			var bx, by, buf [chunk]T
			for ; lo < hi; lo += chunk {
				end := min(lo+chunk, hi)
				dst := buf[:end-lo]
				if direct {
					dst = out[lo:end]
				}
				grad(a.F[2], a.F[1] != 0, d, dst, x(bx[:], lo, end), y(by[:], lo, end))
				if !direct {
					write(dst, lo, 1)
				}
			}
		})
	}
}

func mseSum[T float32 | float64](_ float64, x, y []T) (s float64) {
	y = y[:len(x)]
	for i, v := range x {
		d := float64(v) - float64(y[i])
		s += d * d
	}
	return s
}

func mseGrad[T float32 | float64](_ float64, second bool, d T, dst, x, y []T) {
	if d *= 2; second {
		d = -d
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i, v := range x {
		dst[i] = d * (v - y[i])
	}
}

func l1Sum[T float32 | float64](_ float64, x, y []T) (s float64) {
	y = y[:len(x)]
	for i, v := range x {
		s += math.Abs(float64(v) - float64(y[i]))
	}
	return s
}

// l1Grad is 0 where x and y are equal.
func l1Grad[T float32 | float64](_ float64, second bool, d T, dst, x, y []T) {
	if second {
		d = -d
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i, v := range x {
		switch diff := v - y[i]; {
		case diff > 0:
			dst[i] = d
		case diff < 0:
			dst[i] = -d
		default:
			dst[i] = d * diff // 0, or NaN
		}
	}
}

func smoothL1Sum[T float32 | float64](beta float64, x, y []T) (s float64) {
	y = y[:len(x)]
	half := 0.5 / beta
	for i, v := range x {
		if d := math.Abs(float64(v) - float64(y[i])); d < beta {
			s += half * d * d
		} else {
			s += d - 0.5*beta
		}
	}
	return s
}

func smoothL1Grad[T float32 | float64](beta float64, second bool, d T, dst, x, y []T) {
	if second {
		d = -d
	}
	slope, b := d/T(beta), T(beta)
	x, y = x[:len(dst)], y[:len(dst)]
	for i, v := range x {
		switch diff := v - y[i]; {
		case diff >= b:
			dst[i] = d
		case diff <= -b:
			dst[i] = -d
		default:
			dst[i] = slope * diff
		}
	}
}

func bceSum[T float32 | float64](_ float64, x, y []T) (s float64) {
	y = y[:len(x)]
	for i, v := range x {
		v := float64(v)
		s += max(v, 0) - v*float64(y[i]) + math.Log1p(math.Exp(-math.Abs(v)))
	}
	return s
}

func bceGrad[T float32 | float64](_ float64, second bool, d T, dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i, v := range x {
		if second {
			dst[i] = -d * v
		} else {
			dst[i] = d * T(1/(1+math.Exp(-float64(v)))-float64(y[i]))
		}
	}
}

// klSum is y·(ln y − x), which is 0 for a y of 0.
func klSum[T float32 | float64](_ float64, x, y []T) (s float64) {
	y = y[:len(x)]
	for i, v := range x {
		if p := float64(y[i]); p != 0 {
			s += p * (math.Log(p) - float64(v))
		}
	}
	return s
}

func klGrad[T float32 | float64](_ float64, second bool, d T, dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i, v := range x {
		if second {
			dst[i] = d * T(math.Log(float64(y[i]))+1-float64(v))
		} else {
			dst[i] = -d * y[i]
		}
	}
}
