package host

import (
	"math"

	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	elementwise("gelu", vector(kern.GELURow), geluRow)
	elementwise("gelu backward", geluBackRow[float32], geluBackRow[float64])
	elementwise("gelu tanh", vector(kern.GELUTanhRow), geluTanhRow)
	elementwise("gelu tanh backward", geluTanhBackRow[float32], geluTanhBackRow[float64])
}

func geluRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = 0.5 * v * math.Erfc(-v*(1/math.Sqrt2))
	}
}

// geluBackRow: x, dy.
func geluBackRow[T float32 | float64](_ []float64, dst, x, dy, _ []T) {
	const density = 1 / (math.SqrtPi * math.Sqrt2) // φ(0)
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		v := float64(v)
		dst[i] = T(float64(dy[i]) * (0.5*math.Erfc(-v*(1/math.Sqrt2)) + v*density*math.Exp(-0.5*v*v)))
	}
}

const geluScale, geluCubic = math.Sqrt2 / math.SqrtPi, 0.044715 // √(2/π)

func geluTanhRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = 0.5 * v * (1 + math.Tanh(geluScale*(v+geluCubic*v*v*v)))
	}
}

// geluTanhBackRow: x, dy.
func geluTanhBackRow[T float32 | float64](_ []float64, dst, x, dy, _ []T) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		v := float64(v)
		t := math.Tanh(geluScale * (v + geluCubic*v*v*v))
		dst[i] = T(float64(dy[i]) * 0.5 * (1 + t + v*(1-t*t)*geluScale*(1+3*geluCubic*v*v)))
	}
}
