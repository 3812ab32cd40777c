package host

import "github.com/snug-ml/snug/internal/host/kern"

func init() { elementwise("mul", vector2(kern.MulRow), mulRow) }

func mulRow(_ []float64, dst, x, y, _ []float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}
