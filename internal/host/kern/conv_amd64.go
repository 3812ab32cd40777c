//go:build !race

package kern

import "unsafe"

var convLevels = [avx512bf16 + 1]any{
	avx2: &convKernels[float32]{8, 6, func(rows int, w, src []float32, off []int32, dst []float32, ldc int, tiles []tile, add bool) {
		if rows == 1 && len(off) == 9 {
			convNinex8(&w[0], &src[0], &dst[0], &off[0], number(add), &tiles[0].src, len(tiles))
			return
		}
		tilesX8[rows](len(off), &w[0], &src[0], &dst[0], &off[0], ldc*4, number(add), &tiles[0].src, len(tiles))
	}, func(x, dy []float32, off []int32, sums []float32, tiles []tile) {
		convDots9x8(&x[0], &dy[0], &off[0], &sums[0], &tiles[0].src, len(tiles))
	}, []int{2: 6}, func(_, lines, cols int, x []float32, pitch int, off []int32, b, c []float32) {
		weightsX8[len(off)](lines, cols, &x[0], pitch*4, &off[0], &b[0], &c[0])
	}, nil, nil, nil, nil, nil, nil},
	avx512: &convKernels[float32]{16, 14, func(rows int, w, src []float32, off []int32, dst []float32, ldc int, tiles []tile, add bool) {
		if rows == 1 && len(off) == 9 {
			convNinex16(&w[0], &src[0], &dst[0], &off[0], number(add), &tiles[0].src, len(tiles))
			return
		}
		tilesX16[rows](len(off), &w[0], &src[0], &dst[0], &off[0], ldc*4, number(add), &tiles[0].src, len(tiles))
	}, func(x, dy []float32, off []int32, sums []float32, tiles []tile) {
		convDots9x16(&x[0], &dy[0], &off[0], &sums[0], &tiles[0].src, len(tiles))
	}, []int{1: 11, 2: 11, 3: 9, 4: 6}, func(vectors, lines, cols int, x []float32, pitch int, off []int32, b, c []float32) {
		weightsX16[vectors][len(off)](lines, cols, &x[0], pitch*4, &off[0], &b[0], &c[0])
	}, &planeKernels{
		forward: func(stride int, src []float32, first, pitch, rows int, columns uint64, w, dst []float32, dp, before, after, odd, n int) {
			kernel := planeForwardx16
			if stride == 2 {
				kernel = planeForwardTwox16
			}
			kernel(&src[0], first*4, pitch*4, rows, columns, &w[0], &dst[0], dp*4, before, after, odd, n)
		},
		back: func(odd bool, src []float32, first, pitch, rows int, columns uint64, w, dst []float32, dp, skip, lines, n int) {
			kernel := planeBackTwox16
			if odd {
				kernel = planeBackTwoOddx16
			}
			kernel(&src[0], first*4, pitch*4, rows, columns, &w[0], &dst[0], dp*4, skip, lines, n)
		},
		dots: func(stride int, src []float32, first, pitch, rows int, columns uint64, dy []float32, dp, lines, before, n int, sums []float32) {
			kernel := planeDotsx16
			if stride == 2 {
				kernel = planeDotsTwox16
			}
			kernel(&src[0], first*4, pitch*4, rows, columns, &dy[0], dp*4, lines, before, n, &sums[0])
		},
	}, &winoKernels{
		input: func(channels int, src []float32, plane, first, line int, rows, columns uint64, dst []float32, pitch, frequency, n int) {
			winoInputx16(channels, &src[0], plane*4, first*4, line*4, rows, columns, &dst[0], pitch*4, frequency*4, n)
		},
		output: func(channels int, src []float32, pitch, frequency int, bias, dst []float32, plane, line, columns int) {
			winoOutputx16(channels, &src[0], pitch*4, frequency*4, unsafe.SliceData(bias), &dst[0], plane*4, line*4, columns)
		},
		inputLines: func(s *winoLines, channels int, src []float32, plane int, pieces *winoPieces, dst []float32, pitch, frequency int) {
			kernel := winoInputLines1x16
			switch s.pieces {
			case 2:
				kernel = winoInputLines2x16
			case 4:
				kernel = winoInputLines4x16
			}
			kernel(channels, &src[0], plane*4, &pieces[0].at, &s.index[0][0], s.lanes, &dst[0], pitch*4, frequency*4)
		},
		outputLines: func(s *winoLines, channels int, src []float32, pitch, frequency int, bias, dst []float32, plane int, pieces *winoPieces) {
			kernel := winoOutputLines1x16
			switch s.pieces {
			case 2:
				kernel = winoOutputLines2x16
			case 4:
				kernel = winoOutputLines4x16
			}
			kernel(channels, &src[0], pitch*4, frequency*4, unsafe.SliceData(bias), &dst[0], plane*4, &pieces[0].at, &s.index[0][0])
		},
		winoTaps: winoTaps{
			weights: func(n int, src []float32, lane, next int, dst []float32, rows, frequency int) {
				p := places(rows, lane)
				winoWeightsx16(n, &src[0], &p[0], next*4, &dst[0], rows, frequency*4)
			},
			gradient: func(n int, src []float32, pixel, line int, dst []float32, frequency int) {
				winoGradientx16(n, &src[0], pixel*4, line*4, &dst[0], frequency*4)
			},
			weightsBack: func(n int, src []float32, width, frequency int, dst []float32) {
				winoWeightsBackx16(n, &src[0], width*4, frequency*4, &dst[0])
			},
		},
		four: &wino4x16,
	}, func(n int, src []float32, from []int32, lane int, dst []float32, rows int) {
		gatherWeightsx16(n, &src[0], &from[0], lane*4, &dst[0], rows)
	}, func(n int, src []float32, next, taps int, dst []float32, rows int) {
		p := places(rows, 9)
		packNinesx16(n, &src[0], &p[0], next*4, taps, &dst[0], rows)
	}, func(n int, src []float32, width int, dst []float32, distance, channels int, add bool) {
		if n >= 16 {
			p := places(16, width)
			untwistx16(n/16, &src[0], &p[0], &dst[0], distance*4, channels, 16, number(add))
		}
		if rest := n % 16; rest > 0 {
			p := places(rest, width)
			untwistx16(1, &src[(n-rest)*width], &p[0], &dst[n-rest], distance*4, channels, rest, number(add))
		}
	}, func(src []float32, off []int32, segments []segment, dst []float32, pitch int) {
		convPackx16(len(off), &src[0], &off[0], &segments[0].src, len(segments), &dst[0], pitch*4)
	}},
}

// places are those of rows a distance apart, in bytes; where there is no row, of the first.
func places(rows, distance int) (p [16]int64) {
	for i := range min(rows, len(p)) {
		p[i] = int64(i*distance) * 4
	}
	return p
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

type (
	tilesFunc   = func(k int, a, b, c *float32, off *int32, ldc, acc int, tiles *int32, n int)
	weightsFunc = func(lines, width int, x *float32, pitch int, off *int32, b, c *float32)
)

var (
	tilesX8  = []tilesFunc{nil, conv1x8, conv2x8, conv3x8, conv4x8, conv5x8, conv6x8}
	tilesX16 = []tilesFunc{nil, conv1x16, conv2x16, conv3x16, conv4x16, conv5x16, conv6x16, conv7x16,
		conv8x16, conv9x16, conv10x16, conv11x16, conv12x16, conv13x16, conv14x16}
	weightsX8 = []weightsFunc{nil, convWeights1x2x8, convWeights2x2x8, convWeights3x2x8,
		convWeights4x2x8, convWeights5x2x8, convWeights6x2x8}
	weightsX16 = [][]weightsFunc{nil,
		{nil, convWeights1x1x16, convWeights2x1x16, convWeights3x1x16, convWeights4x1x16, convWeights5x1x16, convWeights6x1x16,
			convWeights7x1x16, convWeights8x1x16, convWeights9x1x16, convWeights10x1x16, convWeights11x1x16},
		{nil, convWeights1x2x16, convWeights2x2x16, convWeights3x2x16, convWeights4x2x16, convWeights5x2x16, convWeights6x2x16,
			convWeights7x2x16, convWeights8x2x16, convWeights9x2x16, convWeights10x2x16, convWeights11x2x16},
		{nil, convWeights1x3x16, convWeights2x3x16, convWeights3x3x16, convWeights4x3x16, convWeights5x3x16, convWeights6x3x16,
			convWeights7x3x16, convWeights8x3x16, convWeights9x3x16},
		{nil, convWeights1x4x16, convWeights2x4x16, convWeights3x4x16, convWeights4x4x16, convWeights5x4x16, convWeights6x4x16},
	}
)

func transposeAsm(blocks int, src []float32, distance, rows int, dst []float32, pitch int) {
	transpose32(blocks, &src[0], distance*4, rows, &dst[0], pitch*4)
}

// lineMasks are, by how many values a line has beyond whole vectors: those in one vector, every other in two.
var lineMasks = func() (m [8][3 * 8]int32) {
	for n := range m {
		for i := range n {
			m[n][i], m[n][8+2*i] = -1, -1
		}
	}
	return
}()

func copyLinesAsm(lines, n int, src []float32, sp int, dst []float32, dp int) {
	if level >= avx512 {
		copyLinesx16(lines, n, &src[0], sp*4, &dst[0], dp*4)
		return
	}
	copyLinesx8(lines, n, &src[0], sp*4, &dst[0], dp*4, &lineMasks[n%8][0])
}

func gatherLinesAsm(lines, n int, src []float32, sp int, dst []float32, dp int) {
	if level >= avx512 {
		gatherLinesx16(lines, n, &src[0], sp*4, &dst[0], dp*4)
		return
	}
	gatherLinesx8(lines, n, &src[0], sp*4, &dst[0], dp*4, &lineMasks[n%8][0])
}

func scatterLinesAsm(lines, n int, src []float32, sp int, dst []float32, dp int) {
	if level >= avx512 {
		scatterLinesx16(lines, n, &src[0], sp*4, &dst[0], dp*4)
		return
	}
	scatterLinesx8(lines, n, &src[0], sp*4, &dst[0], dp*4, &lineMasks[n%8][0])
}
