package host

import (
	"math"

	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	elementwise("leaky relu", leakyRow[float32], leakyRow[float64])
	elementwise("leaky relu backward", leakyBackRow[float32], leakyBackRow[float64])
	elementwise("elu", eluRow[float32], eluRow[float64])
	elementwise("elu backward", eluBackRow[float32], eluBackRow[float64])
}

// leakyRow: F: slope.
func leakyRow[T float32 | float64](f []float64, dst, x, _, _ []T) {
	slope := T(f[0])
	if d := f32(dst); d != nil {
		kern.LeakyRow(d, f32(x), float32(slope))
		return
	}
	x = x[:len(dst)]
	for i, v := range x {
		if v <= 0 {
			v *= slope
		}
		dst[i] = v
	}
}

// leakyBackRow: y, dy; F: slope.
func leakyBackRow[T float32 | float64](f []float64, dst, y, dy, _ []T) {
	slope := T(f[0])
	if d := f32(dst); d != nil {
		kern.LeakyBackRow(d, f32(y), f32(dy), float32(slope))
		return
	}
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		d := dy[i]
		if v <= 0 {
			d *= slope
		}
		dst[i] = d
	}
}

// eluRow: F: α.
func eluRow[T float32 | float64](f []float64, dst, x, _, _ []T) {
	if d := f32(dst); d != nil {
		kern.ELURow(d, f32(x), float32(f[0]))
		return
	}
	x = x[:len(dst)]
	for i, v := range x {
		if v <= 0 {
			v = T(f[0] * math.Expm1(float64(v)))
		}
		dst[i] = v
	}
}

// eluBackRow: y, dy; F: α.
func eluBackRow[T float32 | float64](f []float64, dst, y, dy, _ []T) {
	alpha := T(f[0])
	if d := f32(dst); d != nil {
		kern.ELUBackRow(d, f32(y), f32(dy), float32(alpha))
		return
	}
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		d := dy[i]
		if v <= 0 {
			d *= v + alpha
		}
		dst[i] = d
	}
}
