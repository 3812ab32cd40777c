package kern

// SquareColumns adds x² to sums, in float64, and returns the sum of all, in an order that depends on the length only.
func SquareColumns(sums []float64, x []float32) (all float64) {
	sums = sums[:len(x)]
	i := 0
	if n := len(x) / 8; level >= avx2 && n > 0 {
		all = squareColumnsVec(n, &sums[0], &x[0])
		i = 8 * n
	}
	for ; i < len(x); i++ {
		q := float64(x[i]) * float64(x[i])
		sums[i] += q
		all += q
	}
	return all
}

// ScaledSquares is the sum of (x·by)², in float64, in an order that depends on the length only.
func ScaledSquares(x []float32, by []float64) (all float64) {
	by = by[:len(x)]
	i := 0
	if n := len(x) / 8; level >= avx2 && n > 0 {
		all = scaledSquaresVec(n, &by[0], &x[0])
		i = 8 * n
	}
	for ; i < len(x); i++ {
		q := float64(x[i]) * by[i]
		all += float64(q * q)
	}
	return all
}

// AdafactorRow is w = keep·w - by·columns·g: what is subtracted is computed in float64, and rounded.
func AdafactorRow(w, g []float32, columns []float64, by float64, keep float32) {
	g, columns = g[:len(w)], columns[:len(w)]
	i := 0
	if n := len(w) / 8; level >= avx2 && n > 0 {
		adafactorVec(n, &columns[0], &w[0], &g[0], by, keep)
		i = 8 * n
	}
	for ; i < len(w); i++ {
		w[i] = float32(keep*w[i]) - float32(by*columns[i]*float64(g[i]))
	}
}
