//go:build !race

package kern

import "golang.org/x/sys/cpu"

var avx2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

var convKernels = [maxRows + 1]func(k int, a, b, c *float32, off *int32, b2, c2, ldc, acc int, mask *[16]int32){
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
	kernel, acc := convKernels[rows], 0
	if add {
		acc = 1
	}
	for i := range tiles {
		t := &tiles[i]
		mask := &laneMasks[t.mask]
		if int(t.mask) == len(laneMasks)-1 {
			mask = nil
		}
		kernel(len(off), &w[0], &src[t.src], &dst[t.dst], &off[0], int(t.src2)*4, int(t.dst2)*4, ldc*4, acc, mask)
	}
}

func weightTileAsm(lines, cols int, x []float32, pitch int, off []int32, b, c []float32) {
	weightKernels[len(off)](lines, cols, &x[0], pitch*4, &off[0], &b[0], &c[0])
}
