package host

func init() { elementwise("mul", mulRow[float32], mulRow[float64]) }

func mulRow[T float32 | float64](_ []float64, dst, x, y, _ []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}
