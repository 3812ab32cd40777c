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
	elementwise("silu", siluRow32, siluRow)
	elementwise("silu backward", siluBackRow32, siluBackRow)
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

func siluRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = v / (1 + math.Exp(-v))
	}
}

func siluRow32(_ []float64, dst, x, _, _ []float32) {
	var sigmoid [chunk]float32
	for at := 0; at < len(dst); at += chunk {
		end := min(at+chunk, len(dst))
		x, dst, sigmoid := x[at:end], dst[at:end], sigmoid[:end-at]
		kern.SigmoidRow(sigmoid, x)
		kern.MulRow(dst, x, sigmoid)
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

func siluBackRow32(_ []float64, dst, x, dy, _ []float32) {
	var sigmoid [chunk]float32
	for at := 0; at < len(dst); at += chunk {
		end := min(at+chunk, len(dst))
		x, dy, dst, sigmoid := x[at:end], dy[at:end], dst[at:end], sigmoid[:end-at]
		kern.SigmoidRow(sigmoid, x)
		for i, v := range x {
			s := sigmoid[i]
			dst[i] = dy[i] * s * (1 + v*(1-s))
		}
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
