package host

import "github.com/snug-ml/snug/internal/host/kern"

func init() {
	elementwise("clamp", clampRow[float32], clampRow[float64])
	elementwise("clamp backward", clampBackRow[float32], clampBackRow[float64])
	elementwise("hardswish", hardswishRow[float32], hardswishRow[float64])
	elementwise("hardswish backward", hardswishBackRow[float32], hardswishBackRow[float64])
	elementwise("abs", absRow[float32], absRow[float64])
	elementwise("abs backward", absBackRow[float32], absBackRow[float64])
}

// clampRow: F: min, max.
func clampRow[T float32 | float64](f []float64, dst, x, _, _ []T) {
	lo, hi := T(f[0]), T(f[1])
	if d := f32(dst); d != nil {
		kern.ClampRow(d, f32(x), float32(lo), float32(hi))
		return
	}
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = min(max(v, lo), hi)
	}
}

// clampBackRow: y, dy; F: min, max.
func clampBackRow[T float32 | float64](f []float64, dst, y, dy, _ []T) {
	lo, hi := T(f[0]), T(f[1])
	if d := f32(dst); d != nil {
		kern.ClampBackRow(d, f32(y), f32(dy), float32(lo), float32(hi))
		return
	}
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		d := dy[i]
		if !(lo < v && v < hi) {
			d = 0
		}
		dst[i] = d
	}
}

func hardswishRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = v * min(max(v+3, 0), 6) * (1.0 / 6)
	}
}

// hardswishBackRow: x, dy.
func hardswishBackRow[T float32 | float64](_ []float64, dst, x, dy, _ []T) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		switch {
		case v <= -3:
			dst[i] = 0
		case v >= 3:
			dst[i] = dy[i]
		default:
			dst[i] = dy[i] * (2*v + 3) * (1.0 / 6)
		}
	}
}

func absRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = max(v, -v)
	}
}

// absBackRow: x, dy.
func absBackRow[T float32 | float64](_ []float64, dst, x, dy, _ []T) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		switch {
		case v > 0:
			dst[i] = dy[i]
		case v < 0:
			dst[i] = -dy[i]
		default:
			dst[i] = 0
		}
	}
}
