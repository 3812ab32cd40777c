package kern

import "math"

// SumRow is the sum of x, in an order that depends on its length only.
func SumRow(x []float32) float64 {
	switch {
	case level >= avx512:
		return sumWide(len(x), first(x), nil)
	case level >= avx2:
		return sumVec(len(x), first(x), lanes(len(x)))
	}
	s := 0.0
	for _, v := range x {
		s += float64(v)
	}
	return s
}

// SquaresRow is Σ x², in an order that depends on the length only.
func SquaresRow(x []float32) float64 {
	if level >= avx512 {
		return squaresWide(len(x), first(x), nil)
	}
	_, s := MomentsRow(x, 0)
	return s
}

// DotRow is Σ x·y, in an order that depends on the length only.
func DotRow(x, y []float32) float64 {
	y = y[:len(x)]
	if level >= avx512 {
		return dotWide(len(x), first(x), first(y), nil)
	}
	_, s := ProductsRow(x, y, 0)
	return s
}

// MaxRow is the greatest of x, NaNs left out: of nothing, -∞.
func MaxRow(x []float32) float32 {
	switch {
	case level >= avx512:
		return maxWide(len(x), first(x), nil)
	case level >= avx2:
		return maxVec(len(x), first(x), lanes(len(x)))
	}
	top := float32(math.Inf(-1))
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	return top
}

// ExpSumRow is dst = e^(x - shift), and the sum of that, in an order that depends on the length only.
func ExpSumRow(dst, x []float32, shift float32) float64 {
	x = x[:len(dst)]
	if level >= avx512 {
		return expSumWide(len(dst), first(dst), first(x), &shift)
	}
	ExpShiftRow(dst, x, shift)
	return SumRow(dst)
}

// SumExpRow is ExpSumRow without a dst.
func SumExpRow(x []float32, shift float32) (sum float64) {
	if level >= avx512 {
		return sumExpWide(len(x), first(x), &shift)
	}
	var buf [512]float32
	for len(x) > 0 {
		n := min(len(x), len(buf))
		sum += ExpSumRow(buf[:n], x[:n], shift)
		x = x[n:]
	}
	return sum
}

// ExpScaledRow is dst = scale·e^(x - shift).
func ExpScaledRow(dst, x []float32, shift, scale float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		s := [2]float32{shift, scale}
		expScaledVec(to(dst, x, x), first(dst), first(x), &s[0])
		return
	}
	for i, v := range x {
		dst[i] = scale * float32(math.Exp(float64(v-shift)))
	}
}

// SoftmaxBackRow is dst = y·(dy - dot), for dot = Σ y·dy.
func SoftmaxBackRow(dst, y, dy []float32, dot float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		softmaxBackVec(to(dst, y, dy), first(dst), first(y), first(dy), &dot)
		return
	}
	for i, v := range y {
		dst[i] = v * (dy[i] - dot)
	}
}
