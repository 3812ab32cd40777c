package host

func init() {
	elementwise("relu", reluRow[float32], reluRow[float64])
	elementwise("relu backward", reluBackRow[float32], reluBackRow[float64])
}

func reluRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = max(0, x[i])
	}
}

// reluBackRow: y, dy.
func reluBackRow[T float32 | float64](_ []float64, dst, y, dy, _ []T) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i := range dst {
		if dst[i] = 0; y[i] > 0 {
			dst[i] = dy[i]
		}
	}
}
