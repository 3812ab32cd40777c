package kern

import (
	"math"
	"unsafe"
)

//go:generate go -C gen run ./vec -out ../vec_amd64.s -stubs ../vec_stubs_amd64.go -pkg kern

// Rows are computed element by element, on one goroutine: dst[i] of x[i] and y[i] for all i of dst. The others must be
// as long; dst may be one of them. What an element becomes does not depend on its place in the row.

// firstElements is a mask: from firstElements[8-n] on, n lanes exist.
var firstElements = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

func lanes(n int) *int32 { return &firstElements[8-n%8] }

func first(s []float32) *float32 { return unsafe.SliceData(s) }

// AddRow is dst = x + y.
func AddRow(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	if avx2 {
		addVec(len(dst), first(dst), first(x), first(y), nil, lanes(len(dst)))
		return
	}
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// MulRow is dst = x · y.
func MulRow(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	if avx2 {
		mulVec(len(dst), first(dst), first(x), first(y), nil, lanes(len(dst)))
		return
	}
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

// Axpy is dst += a · x, rounded twice.
func Axpy(dst []float32, a float32, x []float32) {
	x = x[:len(dst)]
	if avx2 {
		axpyVec(len(dst), first(dst), first(x), &a, lanes(len(dst)))
		return
	}
	for i := range dst {
		dst[i] += float32(a * x[i])
	}
}

// ReLURow is dst = max(x, 0); a NaN stays one.
func ReLURow(dst, x []float32) {
	x = x[:len(dst)]
	if avx2 {
		reluVec(len(dst), first(dst), first(x), nil, lanes(len(dst)))
		return
	}
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

// ReLUBackRow is dst = dy where y > 0, else 0.
func ReLUBackRow(dst, y, dy []float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if avx2 {
		reluBackVec(len(dst), first(dst), first(y), first(dy), nil, lanes(len(dst)))
		return
	}
	for i, v := range y {
		if v > 0 {
			dst[i] = dy[i]
		} else {
			dst[i] = 0
		}
	}
}

// ExpRow is dst = eˣ.
func ExpRow(dst, x []float32) {
	x = x[:len(dst)]
	if avx2 {
		expVec(len(dst), first(dst), first(x), nil, lanes(len(dst)))
		return
	}
	for i, v := range x {
		dst[i] = float32(math.Exp(float64(v)))
	}
}

// SigmoidRow is dst = 1 / (1 + e⁻ˣ).
func SigmoidRow(dst, x []float32) {
	x = x[:len(dst)]
	if avx2 {
		sigmoidVec(len(dst), first(dst), first(x), nil, lanes(len(dst)))
		return
	}
	for i, v := range x {
		dst[i] = float32(1 / (1 + math.Exp(-float64(v))))
	}
}

// TanhRow is dst = tanh x.
func TanhRow(dst, x []float32) {
	x = x[:len(dst)]
	if avx2 {
		tanhVec(len(dst), first(dst), first(x), nil, lanes(len(dst)))
		return
	}
	for i, v := range x {
		dst[i] = float32(math.Tanh(float64(v)))
	}
}

// GELURow is dst = x · Φ(x), Φ being the normal distribution: the exact form.
func GELURow(dst, x []float32) {
	x = x[:len(dst)]
	if avx2 {
		geluVec(len(dst), first(dst), first(x), nil, lanes(len(dst)))
		return
	}
	for i, v := range x {
		dst[i] = float32(float64(v) * math.Erfc(-float64(v)/math.Sqrt2) / 2)
	}
}

// GELUTanhRow is dst = x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))).
func GELUTanhRow(dst, x []float32) {
	x = x[:len(dst)]
	if avx2 {
		geluTanhVec(len(dst), first(dst), first(x), nil, lanes(len(dst)))
		return
	}
	for i, v := range x {
		v := float64(v)
		dst[i] = float32(v / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v))))
	}
}

// GELUBackRow is dst = dy · GELU'(x).
func GELUBackRow(dst, x, dy []float32) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	if avx2 {
		geluBackVec(len(dst), first(dst), first(x), first(dy), nil, lanes(len(dst)))
		return
	}
	for i, v := range x {
		v := float64(v)
		dst[i] = float32(float64(dy[i]) * (math.Erfc(-v/math.Sqrt2)/2 + v*math.Exp(-v*v/2)/math.Sqrt(2*math.Pi)))
	}
}

// GELUTanhBackRow is dst = dy · GELUTanh'(x).
func GELUTanhBackRow(dst, x, dy []float32) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	if avx2 {
		geluTanhBackVec(len(dst), first(dst), first(x), first(dy), nil, lanes(len(dst)))
		return
	}
	scale := 2 * math.Sqrt(2/math.Pi)
	for i, v := range x {
		v := float64(v)
		s := 1 / (1 + math.Exp(-scale*(v+0.044715*v*v*v)))
		dst[i] = float32(float64(dy[i]) * (s + v*s*(1-s)*scale*(1+3*0.044715*v*v)))
	}
}

// SiLURow is dst = x / (1 + e⁻ˣ).
func SiLURow(dst, x []float32) {
	x = x[:len(dst)]
	if avx2 {
		siluVec(len(dst), first(dst), first(x), nil, lanes(len(dst)))
		return
	}
	for i, v := range x {
		dst[i] = float32(float64(v) / (1 + math.Exp(-float64(v))))
	}
}

// ExpShiftRow is dst = e^(x - shift).
func ExpShiftRow(dst, x []float32, shift float32) {
	x = x[:len(dst)]
	if avx2 {
		expShiftVec(len(dst), first(dst), first(x), &shift, lanes(len(dst)))
		return
	}
	for i, v := range x {
		dst[i] = float32(math.Exp(float64(v - shift)))
	}
}

// SumRow is the sum of x, in an order that depends on its length only.
func SumRow(x []float32) float64 {
	if avx2 {
		return sumVec(len(x), first(x), lanes(len(x)))
	}
	s := 0.0
	for _, v := range x {
		s += float64(v)
	}
	return s
}
