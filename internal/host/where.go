package host

func init() {
	selection("where", whereRow[float32], whereRow[float64], whereRow[int64])
	selection("masked fill", maskedFillRow[float32], maskedFillRow[float64], maskedFillRow[int64])
}

// whereRow: x where cond is not 0, else y.
func whereRow[T number](_ []float64, dst, x, y, cond []T) {
	x, y, cond = x[:len(dst)], y[:len(dst)], cond[:len(dst)]
	for i := range dst {
		v := y[i]
		if cond[i] != 0 {
			v = x[i]
		}
		dst[i] = v
	}
}

// maskedFillRow: x, mask; F: value, and 1 or 0 for the mask where it goes.
func maskedFillRow[T number](f []float64, dst, x, mask, _ []T) {
	value, when := T(f[0]), f[1] != 0
	x, mask = x[:len(dst)], mask[:len(dst)]
	for i := range dst {
		v := x[i]
		if (mask[i] != 0) == when {
			v = value
		}
		dst[i] = v
	}
}
