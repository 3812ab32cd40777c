package kern

// NormRow is dst = (x - mean)·scale + shift, rounded three times.
func NormRow(dst, x []float32, mean, scale, shift float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		s := [3]float32{mean, scale, shift}
		normVec(len(dst), first(dst), first(x), &s[0])
		return
	}
	for i, v := range x {
		dst[i] = float32((v-mean)*scale) + shift
	}
}

// NormClampRow is NormRow, but no less than 0 and no more than most; a NaN stays one.
func NormClampRow(dst, x []float32, mean, scale, shift, most float32) {
	x = x[:len(dst)]
	if level >= avx2 {
		s := [4]float32{mean, scale, shift, most}
		normClampVec(len(dst), first(dst), first(x), &s[0])
		return
	}
	for i, v := range x {
		dst[i] = min(max(float32((v-mean)*scale)+shift, 0), most)
	}
}

// NormPassRow is dst = dy where NormRow is above 0 and below most, else 0.
func NormPassRow(dst, x, dy []float32, mean, scale, shift, most float32) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	if level >= avx2 {
		s := [4]float32{mean, scale, shift, most}
		normPassVec(len(dst), first(dst), first(x), first(dy), &s[0])
		return
	}
	for i, v := range x {
		d := dy[i]
		if y := float32((v-mean)*scale) + shift; !(0 < y && y < most) {
			d = 0
		}
		dst[i] = d
	}
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
	dy, x = dy[:len(dst)], x[:len(dst)]
	if level >= avx2 {
		s := [4]float32{scale, mean, p, q}
		normBackVec(len(dst), first(dst), first(dy), first(x), &s[0])
		return
	}
	for i, v := range x {
		dst[i] = float32(scale*dy[i]) + float32(p*(v-mean)) + q
	}
}

// MomentsRow is Σ (x - from) and Σ (x - from)², in an order that depends on the length only.
func MomentsRow(x []float32, from float32) (sum, squares float64) {
	if level >= avx2 {
		return momentsVec(len(x), first(x), &from, lanes(len(x)))
	}
	for _, v := range x {
		d := float64(v) - float64(from)
		sum += d
		squares += d * d
	}
	return sum, squares
}

// ProductsRow is Σ dy and Σ dy·(x - mean), in an order that depends on the length only.
func ProductsRow(dy, x []float32, mean float32) (sum, product float64) {
	x = x[:len(dy)]
	if level >= avx2 {
		return productsVec(len(dy), first(dy), first(x), &mean, lanes(len(dy)))
	}
	for i, g := range dy {
		sum += float64(g)
		product += float64(g) * float64(x[i]-mean)
	}
	return sum, product
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
