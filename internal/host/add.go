package host

import "github.com/snug-ml/snug/internal/host/kern"

func init() {
	elementwise("add", vector2(kern.AddRow), addRow)
	elementwise("scale", scaleRow[float32], scaleRow[float64])
	elementwise("lerp", lerpRow[float32], lerpRow[float64])
}

func addRow(_ []float64, dst, x, y, _ []float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// scaleRow: F: factor.
func scaleRow[T float32 | float64](f []float64, dst, x, _, _ []T) {
	scaled(dst, x, T(f[0]))
}

func scaled[T float32 | float64](dst, x []T, by T) {
	if d := f32(dst); d != nil {
		kern.ScaleRow(d, f32(x), float32(by))
		return
	}
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * by
	}
}

// lerpRow is x + w·(scale·y − x); F: w, scale.
func lerpRow[T float32 | float64](f []float64, dst, x, y, _ []T) {
	w, scale := T(f[0]), T(f[1])
	if d := f32(dst); d != nil {
		kern.LerpRow(d, f32(x), f32(y), float32(w), float32(scale))
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + w*(scale*y[i]-x[i])
	}
}
