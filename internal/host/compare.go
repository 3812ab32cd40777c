package host

import "github.com/snug-ml/snug/internal/driver"

func init() {
	comparison("equal", equalRow[float32], equalRow[float64], equalRow[int64])
	comparison("not equal", notEqualRow[float32], notEqualRow[float64], notEqualRow[int64])
	comparison("less", lessRow[float32], lessRow[float64], lessRow[int64])
	comparison("less or equal", lessEqualRow[float32], lessEqualRow[float64], lessEqualRow[int64])
	driver.Register("not", driver.Bool, backend, rows(notRow))
}

func equalRow[T number](_ []float64, dst, x, y, _ []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth[T](x[i] == y[i])
	}
}

func notEqualRow[T number](_ []float64, dst, x, y, _ []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth[T](x[i] != y[i])
	}
}

func lessRow[T number](_ []float64, dst, x, y, _ []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth[T](x[i] < y[i])
	}
}

func lessEqualRow[T number](_ []float64, dst, x, y, _ []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth[T](x[i] <= y[i])
	}
}

func notRow(_ []float64, dst, x, _, _ []int64) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = truth[int64](x[i] == 0)
	}
}

func truth[T number](b bool) T {
	if b {
		return 1
	}
	return 0
}
