package host

import (
	"math"

	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	elementwise("gelu", vector(kern.GELURow), geluRow)
	elementwise("gelu backward", vector2(kern.GELUBackRow), geluBackRow)
	elementwise("gelu tanh", vector(kern.GELUTanhRow), geluTanhRow)
	elementwise("gelu tanh backward", vector2(kern.GELUTanhBackRow), geluTanhBackRow)
}

func geluRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = 0.5 * v * math.Erfc(-v*(1/math.Sqrt2))
	}
}

const normalDensity = 1 / (math.SqrtPi * math.Sqrt2) // φ(0)

// geluBackRow: x, dy.
func geluBackRow(_ []float64, dst, x, dy, _ []float64) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		dst[i] = dy[i] * (0.5*math.Erfc(-v*(1/math.Sqrt2)) + v*normalDensity*math.Exp(-0.5*v*v))
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
func geluTanhBackRow(_ []float64, dst, x, dy, _ []float64) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		t := math.Tanh(geluScale * (v + geluCubic*v*v*v))
		dst[i] = dy[i] * 0.5 * (1 + t + v*(1-t*t)*geluScale*(1+3*geluCubic*v*v))
	}
}
