package host

import "github.com/snug-ml/snug/internal/host/kern"

func init() {
	elementwise("relu", reluRow[float32], reluRow[float64])
	elementwise("relu backward", vector2(kern.ReLUBackRow), reluBackRow)
}

func reluRow[T float32 | float64](_ []float64, dst, x, _, _ []T) {
	if d, ok := any(dst).([]float32); ok {
		kern.ReLURow(d, any(x).([]float32))
		return
	}
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = max(0, x[i])
	}
}

// reluBackRow: y, dy.
func reluBackRow(_ []float64, dst, y, dy, _ []float64) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		d := dy[i]
		if !(v > 0) {
			d = 0
		}
		dst[i] = d
	}
}
