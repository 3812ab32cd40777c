package host

import (
	"math"

	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	elementwise("exp", expRow[float32], expRow[float64])
	elementwise("exp backward", vector2(kern.MulRow), mulRow)
	elementwise("log", logRow[float32], logRow[float64])
	elementwise("log backward", logBackRow[float32], logBackRow[float64])
	elementwise("sqrt", sqrtRow[float32], sqrtRow[float64])
	elementwise("sqrt backward", sqrtBackRow[float32], sqrtBackRow[float64])
	elementwise("square", squareRow[float32], squareRow[float64])
	elementwise("square backward", squareBackRow[float32], squareBackRow[float64])
	elementwise("pow", powRow[float32], powRow[float64])
	elementwise("pow backward", powBackRow[float32], powBackRow[float64])
}

func expRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	if d, ok := any(dst).([]float32); ok {
		kern.ExpRow(d, any(x).([]float32))
		return
	}
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = T(math.Exp(float64(v)))
	}
}

func logRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = T(math.Log(float64(v)))
	}
}

// logBackRow: x, dy.
func logBackRow[T float32 | float64](_ []float64, dst, x, dy, _ []T) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		dst[i] = dy[i] / v
	}
}

func sqrtRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = T(math.Sqrt(float64(v)))
	}
}

// sqrtBackRow: y, dy.
func sqrtBackRow[T float32 | float64](_ []float64, dst, y, dy, _ []T) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = dy[i] / (2 * v)
	}
}

func squareRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = v * v
	}
}

// squareBackRow: x, dy.
func squareBackRow[T float32 | float64](_ []float64, dst, x, dy, _ []T) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		dst[i] = 2 * v * dy[i]
	}
}

// powRow: F: p.
func powRow[T float32 | float64](f []float64, dst, x, _, _ []T) {
	p := f[0]
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = T(math.Pow(float64(v), p))
	}
}

// powBackRow: x, dy; F: p.
func powBackRow[T float32 | float64](f []float64, dst, x, dy, _ []T) {
	p := f[0]
	if p == 0 {
		clear(dst)
		return
	}
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		dst[i] = T(p*math.Pow(float64(v), p-1)) * dy[i]
	}
}
