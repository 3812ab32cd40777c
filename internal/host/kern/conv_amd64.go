//go:build !race

package kern

var convKernels = [maxRows + 1]func(k int, a, b, c *float32, off *int32, ldc, acc int, tiles *int32, n int, masks *[16]int32){
	nil, conv32_1, conv32_2, conv32_3, conv32_4, conv32_5, conv32_6}

var weightKernels = [maxRows + 1]func(lines, width int, x *float32, pitch int, off *int32, b, c *float32){
	nil, convWeights32_1, convWeights32_2, convWeights32_3, convWeights32_4, convWeights32_5, convWeights32_6}

// laneMasks has, for each pair of widths, the lanes of two vectors.
var laneMasks = func() (m [(vector + 1) * (vector + 1)][2 * vector]int32) {
	for i := range m {
		for j := range vector {
			if j < i/(vector+1) {
				m[i][j] = -1
			}
			if j < i%(vector+1) {
				m[i][vector+j] = -1
			}
		}
	}
	return
}()

func convTilesAsm(rows int, w, src []float32, off []int32, dst []float32, ldc int, tiles []tile, add bool) {
	acc := 0
	if add {
		acc = 1
	}
	if rows == 1 && len(off) == 9 {
		conv32_9(&w[0], &src[0], &dst[0], &off[0], acc, &tiles[0].src, len(tiles), &laneMasks[0])
		return
	}
	convKernels[rows](len(off), &w[0], &src[0], &dst[0], &off[0], ldc*4, acc, &tiles[0].src, len(tiles), &laneMasks[0])
}

func weightTileAsm(lines, cols int, x []float32, pitch int, off []int32, b, c []float32) {
	weightKernels[len(off)](lines, cols, &x[0], pitch*4, &off[0], &b[0], &c[0])
}

func transposeAsm(blocks int, src []float32, distance, rows int, dst []float32, pitch int) {
	transpose32(blocks, &src[0], distance*4, rows, &dst[0], pitch*4)
}

// lineMasks are, by how many values a line has beyond whole vectors: those in one vector, every other in two.
var lineMasks = func() (m [vector][3 * vector]int32) {
	for n := range m {
		for i := range n {
			m[n][i], m[n][vector+2*i] = -1, -1
		}
	}
	return
}()

func copyLinesAsm(lines, n int, src []float32, sp int, dst []float32, dp int) {
	copyLines32(lines, n, &src[0], sp*4, &dst[0], dp*4, &lineMasks[n%vector][0])
}

func gatherLinesAsm(lines, n int, src []float32, sp int, dst []float32, dp int) {
	gatherLines32(lines, n, &src[0], sp*4, &dst[0], dp*4, &lineMasks[n%vector][0])
}

func scatterLinesAsm(lines, n int, src []float32, sp int, dst []float32, dp int) {
	scatterLines32(lines, n, &src[0], sp*4, &dst[0], dp*4, &lineMasks[n%vector][0])
}

func convDotsAsm(x, dy []float32, off []int32, sums []float32, tiles []tile) {
	convDots32_9(&x[0], &dy[0], &off[0], &sums[0], &tiles[0].src, len(tiles), 0, &laneMasks[0])
}
