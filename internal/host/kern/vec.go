package kern

import (
	"math"
	"unsafe"
)

//go:generate go -C gen run ./vec -out ../vec_amd64.s -stubs ../vec_stubs_amd64.go -pkg kern

// Rows are computed element by element, on one goroutine: dst[i] of x[i] and y[i] for all i of dst. The others must be
// as long; dst may be one of them. What an element becomes does not depend on its place in the row.

// firstElements is a mask for sums: from firstElements[8-n] on, n lanes exist.
var firstElements = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

func lanes(n int) *int32 { return &firstElements[8-n%8] }

func first(s []float32) *float32 { return unsafe.SliceData(s) }

// Past is the length from which rows go past the caches, if dst begins with a cache line and is neither x nor y: it need not
// be read before it is written. Who wants that leaves a large result in rows as long; who soon reads what a row wrote, in
// shorter ones.
const Past = 1 << 16

// to is what a kernel is told of a row's length: it is negative where stores go past the caches.
func to(dst, x, y []float32) int {
	n, d := len(dst), first(dst)
	if n >= Past && uintptr(unsafe.Pointer(d))%64 == 0 && d != first(x) && d != first(y) {
		n = -n
	}
	return n
}

// AddRow is dst = x + y.
func AddRow(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	if level >= avx2 {
		addVec(to(dst, x, y), first(dst), first(x), first(y), nil)
		return
	}
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// MulRow is dst = x · y.
func MulRow(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	if level >= avx2 {
		mulVec(to(dst, x, y), first(dst), first(x), first(y), nil)
		return
	}
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

// SubRow is dst = x - y.
func SubRow(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	if level >= avx2 {
		subVec(to(dst, x, y), first(dst), first(x), first(y), nil)
		return
	}
	for i := range dst {
		dst[i] = x[i] - y[i]
	}
}

// DivRow is dst = x / y.
func DivRow(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	if level >= avx2 {
		divVec(to(dst, x, y), first(dst), first(x), first(y), nil)
		return
	}
	for i := range dst {
		dst[i] = x[i] / y[i]
	}
}

// ScaleRow is dst = x · by.
func ScaleRow(dst, x []float32, by float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		scaleVec(to(dst, x, x), first(dst), first(x), &by)
		return
	}
	for i, v := range x {
		dst[i] = v * by
	}
}

// LerpRow is dst = x + weight·(scale·y - x), rounded after each step.
func LerpRow(dst, x, y []float32, weight, scale float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	if level >= avx2 {
		s := [2]float32{weight, scale}
		lerpVec(to(dst, x, y), first(dst), first(x), first(y), &s[0])
		return
	}
	for i, v := range x {
		dst[i] = v + float32(weight*(float32(scale*y[i])-v))
	}
}

// Axpy is dst += a · x, rounded twice.
func Axpy(dst []float32, a float32, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		axpyVec(len(dst), first(dst), first(x), &a)
		return
	}
	for i := range dst {
		dst[i] += float32(a * x[i])
	}
}

// ReLURow is dst = max(x, 0); a NaN stays one.
func ReLURow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		reluVec(to(dst, x, x), first(dst), first(x), nil)
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
	if level >= avx2 {
		reluBackVec(to(dst, y, dy), first(dst), first(y), first(dy), nil)
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

// ClampRow is dst = x, but no less than lo and no more than hi; a NaN stays one.
func ClampRow(dst, x []float32, lo, hi float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		s := [2]float32{lo, hi}
		clampVec(to(dst, x, x), first(dst), first(x), &s[0])
		return
	}
	for i, v := range x {
		dst[i] = min(max(v, lo), hi)
	}
}

// ClampBackRow is dst = dy where lo < y < hi, else 0.
func ClampBackRow(dst, y, dy []float32, lo, hi float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		s := [2]float32{lo, hi}
		clampBackVec(to(dst, y, dy), first(dst), first(y), first(dy), &s[0])
		return
	}
	for i, v := range y {
		d := dy[i]
		if !(lo < v && v < hi) {
			d = 0
		}
		dst[i] = d
	}
}

// LeakyRow is dst = x, times slope where x ≤ 0.
func LeakyRow(dst, x []float32, slope float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		leakyVec(to(dst, x, x), first(dst), first(x), &slope)
		return
	}
	for i, v := range x {
		if v <= 0 {
			v *= slope
		}
		dst[i] = v
	}
}

// LeakyBackRow is dst = dy, times slope where y ≤ 0.
func LeakyBackRow(dst, y, dy []float32, slope float32) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		leakyBackVec(to(dst, y, dy), first(dst), first(y), first(dy), &slope)
		return
	}
	for i, v := range y {
		d := dy[i]
		if v <= 0 {
			d *= slope
		}
		dst[i] = d
	}
}

// ExpRow is dst = eˣ.
func ExpRow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		expVec(to(dst, x, x), first(dst), first(x), nil)
		return
	}
	for i, v := range x {
		dst[i] = float32(math.Exp(float64(v)))
	}
}

// SigmoidRow is dst = 1 / (1 + e⁻ˣ).
func SigmoidRow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		sigmoidVec(to(dst, x, x), first(dst), first(x), nil)
		return
	}
	for i, v := range x {
		dst[i] = float32(1 / (1 + math.Exp(-float64(v))))
	}
}

// TanhRow is dst = tanh x.
func TanhRow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		tanhVec(to(dst, x, x), first(dst), first(x), nil)
		return
	}
	for i, v := range x {
		dst[i] = float32(math.Tanh(float64(v)))
	}
}

// GELURow is dst = x · Φ(x), Φ being the normal distribution: the exact form.
func GELURow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		geluVec(to(dst, x, x), first(dst), first(x), nil)
		return
	}
	for i, v := range x {
		dst[i] = float32(float64(v) * math.Erfc(-float64(v)/math.Sqrt2) / 2)
	}
}

// GELUTanhRow is dst = x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))).
func GELUTanhRow(dst, x []float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		geluTanhVec(to(dst, x, x), first(dst), first(x), nil)
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
	if level >= avx2 {
		geluBackVec(to(dst, x, dy), first(dst), first(x), first(dy), nil)
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
	if level >= avx2 {
		geluTanhBackVec(to(dst, x, dy), first(dst), first(x), first(dy), nil)
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
	if level >= avx2 {
		siluVec(to(dst, x, x), first(dst), first(x), nil)
		return
	}
	for i, v := range x {
		dst[i] = float32(float64(v) / (1 + math.Exp(-float64(v))))
	}
}

// ExpShiftRow is dst = e^(x - shift).
func ExpShiftRow(dst, x []float32, shift float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		expShiftVec(to(dst, x, x), first(dst), first(x), &shift)
		return
	}
	for i, v := range x {
		dst[i] = float32(math.Exp(float64(v - shift)))
	}
}

// SumColumns adds n rows to sums, in order: row i begins at x[i·distance].
func SumColumns(sums []float64, x []float32, distance, n int) {
	if n == 0 || len(sums) == 0 {
		return
	}
	_ = x[(n-1)*distance+len(sums)-1]
	j := 0
	if level >= avx2 {
		for ; j+32 <= len(sums); j += 32 {
			columnsVec32(n, &sums[j], &x[j], 4*distance)
		}
		for ; j+4 <= len(sums); j += 4 {
			columnsVec4(n, &sums[j], &x[j], 4*distance)
		}
	}
	if j == len(sums) {
		return
	}
	rest := sums[j:]
	for i := range n {
		for q, v := range x[i*distance+j:][:len(rest)] {
			rest[q] += float64(v)
		}
	}
}
