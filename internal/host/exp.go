package host

import (
	"math"

	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	elementwise("exp", expRow[float32], expRow[float64])
	elementwise("exp backward", vector2(kern.MulRow), mulRow)
	elementwise("log", vector(kern.LogRow), logRow)
	elementwise("log backward", logBackRow[float32], logBackRow[float64])
	elementwise("sqrt", vector(kern.SqrtRow), sqrtRow)
	elementwise("sqrt backward", vector2(kern.SqrtBackRow), sqrtBackRow)
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

func logRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = math.Log(v)
	}
}

// logBackRow: x, dy.
func logBackRow[T float32 | float64](_ []float64, dst, x, dy, _ []T) {
	if d := f32(dst); d != nil {
		kern.DivRow(d, f32(dy), f32(x))
		return
	}
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		dst[i] = dy[i] / v
	}
}

func sqrtRow(_ []float64, dst, x, _, _ []float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = math.Sqrt(v)
	}
}

// sqrtBackRow: y, dy.
func sqrtBackRow(_ []float64, dst, y, dy, _ []float64) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = dy[i] / (2 * v)
	}
}

func squareRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	if d := f32(dst); d != nil {
		kern.MulRow(d, f32(x), f32(x))
		return
	}
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
	if p == 2 {
		squareRow(f, dst, x, nil, nil)
		return
	}
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
	if p == 2 {
		squareBackRow(f, dst, x, dy, nil)
		return
	}
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		dst[i] = T(p*math.Pow(float64(v), p-1)) * dy[i]
	}
}
