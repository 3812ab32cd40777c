package host

import (
	"math"

	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	elementwise("gelu", vector(kern.GELURow), geluRow)
	elementwise("gelu backward", geluBackRow32, geluBackRow)
	elementwise("gelu tanh", vector(kern.GELUTanhRow), geluTanhRow)
	elementwise("gelu tanh backward", geluTanhBackRow32, geluTanhBackRow)
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

// geluBackRow32 has Φ(x) from GELU itself, which is x·Φ(x), and near 0 from its series.
func geluBackRow32(_ []float64, dst, x, dy, _ []float32) {
	var gelu, density [chunk]float32
	for at := 0; at < len(dst); at += chunk {
		end := min(at+chunk, len(dst))
		x, dy, dst := x[at:end], dy[at:end], dst[at:end]
		gelu, density := gelu[:len(x)], density[:len(x)]
		for i, v := range x {
			density[i] = -0.5 * v * v
		}
		kern.ExpRow(density, density)
		kern.GELURow(gelu, x)
		for i, v := range x {
			cdf := gelu[i] / v
			if s := v * v; s < 0.01 {
				cdf = 0.5 + normalDensity*v*(1-s*(1.0/6-s*(1.0/40)))
			}
			dst[i] = dy[i] * (cdf + v*normalDensity*density[i])
		}
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

func geluTanhBackRow32(_ []float64, dst, x, dy, _ []float32) {
	var tanh [chunk]float32
	for at := 0; at < len(dst); at += chunk {
		end := min(at+chunk, len(dst))
		x, dy, dst, tanh := x[at:end], dy[at:end], dst[at:end], tanh[:end-at]
		for i, v := range x {
			tanh[i] = geluScale * (v + geluCubic*v*v*v)
		}
		kern.TanhRow(tanh, tanh)
		for i, v := range x {
			t := tanh[i]
			dst[i] = dy[i] * 0.5 * (1 + t + v*(1-t*t)*geluScale*(1+3*geluCubic*v*v))
		}
	}
}
