package kern

import "math"

// NormRow is dst = (x - mean)·scale + shift, rounded three times.
func NormRow(dst, x []float32, mean, scale, shift float32) {
	inf := float32(math.Inf(1))
	NormPlanes(dst, x, []Channel[float32]{{Mean: mean, Scale: scale, Shift: shift, Low: -inf, High: inf}})
}

// LayerRow is dst = (x - mean)·inverse·w + b, element by element of all four.
func LayerRow(dst, x, w, b []float32, mean, inverse float32) {
	x, w, b = x[:len(dst)], w[:len(dst)], b[:len(dst)]
	if level >= avx2 {
		s := [2]float32{mean, inverse}
		layerVec(len(dst), first(dst), first(x), first(w), first(b), &s[0])
		return
	}
	for i, v := range x {
		dst[i] = float32((v-mean)*inverse*w[i]) + b[i]
	}
}

// NormBackRow is dst = scale·dy + p·(x - mean) + q.
func NormBackRow(dst, dy, x []float32, scale, mean, p, q float32) {
	NormBackPlanes(dst, dy, x, []Channel[float32]{{Mean: mean, Scale: scale, P: p, Q: q}}, 0)
}

// MomentsRow is Σ (x - from) and Σ (x - from)², in an order that depends on the length only.
func MomentsRow(x []float32, from float32) (sum, squares float64) {
	var s [1]Sums
	MomentsPlanes(s[:], x, []Channel[float32]{{Mean: from}}, 0)
	return s[0].Total()
}

// ProductsRow is Σ dy and Σ dy·(x - mean), in an order that depends on the length only.
func ProductsRow(dy, x []float32, mean float32) (sum, product float64) {
	var s [1]Sums
	ProductsPlanes(s[:], dy, x, []Channel[float32]{{Mean: mean}}, 0)
	return s[0].Total()
}

// LayerColumns adds dy to sums, and dy·(x - mean)·inverse to products.
func LayerColumns(sums, products []float64, dy, x []float32, mean, inverse float32) {
	x, sums, products = x[:len(dy)], sums[:len(dy)], products[:len(dy)]
	i := 0
	if n := len(dy) / 4; level >= avx2 && n > 0 {
		s := [2]float32{mean, inverse}
		layerColumnsVec(n, &sums[0], &products[0], &dy[0], &x[0], &s[0])
		i = 4 * n
	}
	for ; i < len(dy); i++ {
		g := float64(dy[i])
		sums[i] += g
		products[i] += float64(g*float64(x[i]-mean)) * float64(inverse)
	}
}
