package host

import (
	"math"

	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	elementwise("sigmoid", vector(kern.SigmoidRow), sigmoidRow)
	elementwise("sigmoid backward", sigmoidBackRow[float32], sigmoidBackRow[float64])
	elementwise("tanh", vector(kern.TanhRow), tanhRow)
	elementwise("tanh backward", tanhBackRow[float32], tanhBackRow[float64])
	elementwise("silu", siluRow[float32], siluRow[float64])
	elementwise("silu backward", siluBackRow[float32], siluBackRow[float64])
	elementwise("softplus", softplusRow[float32], softplusRow[float64])
	elementwise("softplus backward", softplusBackRow[float32], softplusBackRow[float64])
}

func sigmoidRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = 1 / (1 + math.Exp(-v))
	}
}

// sigmoidBackRow: y, dy.
func sigmoidBackRow[T float32 | float64](_ []float64, dst, y, dy, _ []T) {
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
func tanhBackRow[T float32 | float64](_ []float64, dst, y, dy, _ []T) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = dy[i] * (1 - v*v)
	}
}

func siluRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	x = x[:len(dst)]
	for i, v := range x {
		v := float64(v)
		dst[i] = T(v / (1 + math.Exp(-v)))
	}
}

// siluBackRow: x, dy.
func siluBackRow[T float32 | float64](_ []float64, dst, x, dy, _ []T) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		v := float64(v)
		s := 1 / (1 + math.Exp(-v))
		dst[i] = T(float64(dy[i]) * s * (1 + v*(1-s)))
	}
}

func softplusRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	x = x[:len(dst)]
	for i, v := range x {
		v := float64(v)
		dst[i] = T(max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
	}
}

// softplusBackRow: y, dy.
func softplusBackRow[T float32 | float64](_ []float64, dst, y, dy, _ []T) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = T(-math.Expm1(-float64(v))) * dy[i]
	}
}
