package host

import (
	"math"

	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	elementwise("sigmoid", vector(kern.SigmoidRow), sigmoidRow)
	elementwise("sigmoid backward", vector2(kern.SigmoidBackRow), sigmoidBackRow)
	elementwise("tanh", vector(kern.TanhRow), tanhRow)
	elementwise("tanh backward", vector2(kern.TanhBackRow), tanhBackRow)
	elementwise("silu", vector(kern.SiLURow), siluRow)
	elementwise("silu backward", vector2(kern.SiLUBackRow), siluBackRow)
	elementwise("softplus", vector(kern.SoftplusRow), softplusRow)
	elementwise("softplus backward", vector2(kern.SoftplusBackRow), softplusBackRow)
}

func sigmoidRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = 1 / (1 + math.Exp(-v))
	}
}

// sigmoidBackRow: y, dy.
func sigmoidBackRow(_ []float64, dst, y, dy, _ []float64) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = dy[i] * v * (1 - v)
	}
}

func tanhRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = math.Tanh(v)
	}
}

// tanhBackRow: y, dy.
func tanhBackRow(_ []float64, dst, y, dy, _ []float64) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = dy[i] * (1 - v*v)
	}
}

func siluRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = v / (1 + math.Exp(-v))
	}
}

// siluBackRow: x, dy.
func siluBackRow(_ []float64, dst, x, dy, _ []float64) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		s := 1 / (1 + math.Exp(-v))
		dst[i] = dy[i] * s * (1 + v*(1-s))
	}
}

func softplusRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = max(v, 0) + math.Log1p(math.Exp(-math.Abs(v)))
	}
}

// softplusBackRow: y, dy.
func softplusBackRow(_ []float64, dst, y, dy, _ []float64) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = -math.Expm1(-v) * dy[i]
	}
}
