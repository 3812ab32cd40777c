package kern

import "math"

// LogRow is dst = log x.
func LogRow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		logVec(to(dst, x, x), first(dst), first(x), nil)
		return
	}
	for i, v := range x {
		dst[i] = float32(math.Log(float64(v)))
	}
}

// SqrtRow is dst = √x.
func SqrtRow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		sqrtVec(to(dst, x, x), first(dst), first(x), nil)
		return
	}
	for i, v := range x {
		dst[i] = float32(math.Sqrt(float64(v)))
	}
}

// SqrtBackRow is dst = dy / 2y, for y = √x.
func SqrtBackRow(dst, y, dy []float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		sqrtBackVec(to(dst, y, dy), first(dst), first(y), first(dy), nil)
		return
	}
	for i, v := range y {
		dst[i] = dy[i] / (2 * v)
	}
}

// SigmoidBackRow is dst = dy·y·(1 - y), for y = sigmoid x.
func SigmoidBackRow(dst, y, dy []float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		sigmoidBackVec(to(dst, y, dy), first(dst), first(y), first(dy), nil)
		return
	}
	for i, v := range y {
		dst[i] = dy[i] * v * (1 - v)
	}
}

// TanhBackRow is dst = dy·(1 - y²), for y = tanh x.
func TanhBackRow(dst, y, dy []float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		tanhBackVec(to(dst, y, dy), first(dst), first(y), first(dy), nil)
		return
	}
	for i, v := range y {
		dst[i] = dy[i] * (1 - float32(v*v))
	}
}

// SiLUBackRow is dst = dy·s·(1 + x·(1 - s)), for s = 1 / (1 + e⁻ˣ).
func SiLUBackRow(dst, x, dy []float32) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		siluBackVec(to(dst, x, dy), first(dst), first(x), first(dy), nil)
		return
	}
	for i, v := range x {
		v := float64(v)
		s := 1 / (1 + math.Exp(-v))
		dst[i] = float32(float64(dy[i]) * s * (1 + v*(1-s)))
	}
}

// SoftplusRow is dst = log(1 + eˣ).
func SoftplusRow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		softplusVec(to(dst, x, x), first(dst), first(x), nil)
		return
	}
	for i, v := range x {
		v := float64(v)
		dst[i] = float32(max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
	}
}

// SoftplusBackRow is dst = dy·(1 - e⁻ʸ), for y = softplus x.
func SoftplusBackRow(dst, y, dy []float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		softplusBackVec(to(dst, y, dy), first(dst), first(y), first(dy), nil)
		return
	}
	for i, v := range y {
		dst[i] = float32(-math.Expm1(-float64(v))) * dy[i]
	}
}

// ELURow is dst = x, or alpha·(eˣ - 1) where x ≤ 0.
func ELURow(dst, x []float32, alpha float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		eluVec(to(dst, x, x), first(dst), first(x), &alpha)
		return
	}
	for i, v := range x {
		if v <= 0 {
			v = float32(float64(alpha) * math.Expm1(float64(v)))
		}
		dst[i] = v
	}
}

// ELUBackRow is dst = dy, times y + alpha where y ≤ 0.
func ELUBackRow(dst, y, dy []float32, alpha float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		eluBackVec(to(dst, y, dy), first(dst), first(y), first(dy), &alpha)
		return
	}
	for i, v := range y {
		d := dy[i]
		if v <= 0 {
			d *= v + alpha
		}
		dst[i] = d
	}
}
