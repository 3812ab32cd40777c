//go:build !race

package kern

import "unsafe"

var wino4x16 = wino4Kernels{
	input: func(s *wino4Halves, channels int, src []float32, plane int, pieces *winoPieces, rows, dst []float32, pitch, frequency int) {
		kernel := wino4Input1x16
		if s.pieces == 2 {
			kernel = wino4Input2x16
		}
		kernel(channels, &src[0], plane*4, &pieces[0].at, &s.index[0][0], s.lanes, &rows[0], &dst[0], pitch*4, frequency*4)
	},
	output: func(s *wino4Halves, channels int, src []float32, pitch, frequency int, bias, dst []float32, plane int, pieces *winoPieces) {
		kernel := wino4Output1x16
		if s.pieces == 2 {
			kernel = wino4Output2x16
		}
		kernel(channels, &src[0], pitch*4, frequency*4, unsafe.SliceData(bias), &dst[0], plane*4, &pieces[0].at, &s.index[0][0])
	},
	winoTaps: winoTaps{
		weights: func(n int, src []float32, lane, next int, dst []float32, rows, frequency int) {
			p := places(rows, lane)
			wino4Weightsx16(n, &src[0], &p[0], next*4, &dst[0], rows, frequency*4)
		},
		gradient: func(n int, src []float32, pixel, line int, dst []float32, frequency int) {
			wino4Gradientx16(n, &src[0], pixel*4, line*4, &dst[0], frequency*4)
		},
		weightsBack: func(n int, src []float32, width, frequency int, dst []float32) {
			wino4WeightsBackx16(n, &src[0], width*4, frequency*4, &dst[0])
		},
	},
}
