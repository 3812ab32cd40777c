package kern

//go:generate go -C gen run ./attend -out ../attend_amd64.s -stubs ../attend_stubs_amd64.go -pkg kern

// AttendRow is x = e^(scale·x − top), where top is scale times the greatest of x, for scale above 0. It returns top
// and the sum of what it wrote.
func AttendRow(x []float32, scale float32) (top, sum float32) {
	if level >= avx512 && len(x) > 0 {
		return attendRow512(len(x), &x[0], scale, tail512(len(x)))
	}
	ScaleRow(x, x, scale)
	top = MaxRow(x)
	ExpShiftRow(x, x, top)
	return top, float32(SumRow(x))
}

// AttendBackRow is x = e^(scale·x − sums) and then y = x·(y − inner)·scale.
func AttendBackRow(x, y []float32, scale, sums, inner float32) {
	y = y[:len(x)]
	if level >= avx512 && len(x) > 0 {
		attendBackRow512(len(x), &x[0], &y[0], scale, sums, inner, tail512(len(x)))
		return
	}
	ScaleRow(x, x, scale)
	ExpShiftRow(x, x, sums)
	for i, p := range x {
		y[i] = p * (y[i] - inner) * scale
	}
}

// tail512 is the mask of the last of n elements, in the last vector.
func tail512(n int) uint32 { return 1<<(n%16) - 1 }
