package host

import "github.com/snug-ml/snug/internal/host/kern"

func init() {
	elementwise("sub", vector2(kern.SubRow), subRow)
	elementwise("shift", shiftRow[float32], shiftRow[float64])
	elementwise("div", vector2(kern.DivRow), divRow)
	elementwise("div backward", divBackRow[float32], divBackRow[float64])
}

func subRow(_ []float64, dst, x, y, _ []float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] - y[i]
	}
}

// shiftRow: F: what is added.
func shiftRow[T float32 | float64](f []float64, dst, x, _, _ []T) {
	by := T(f[0])
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + by
	}
}

func divRow(_ []float64, dst, x, y, _ []float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] / y[i]
	}
}

// divBackRow: quotient, divisor, gradient of the quotient; the divisor's.
func divBackRow[T float32 | float64](_ []float64, dst, q, y, dq []T) {
	q, y, dq = q[:len(dst)], y[:len(dst)], dq[:len(dst)]
	for i := range dst {
		dst[i] = -dq[i] * q[i] / y[i]
	}
}
