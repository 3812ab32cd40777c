package kern

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

//go:generate go -C gen run ./half -out ../half_amd64.s -stubs ../half_stubs_amd64.go -pkg kern

// WidenRow is dst = src; dst is as long.
func WidenRow[T driver.B16 | driver.F16](dst []float32, src []T) { WidenRows(dst, src, 1, len(src), 0) }

// WidenRows is WidenRow for rows of n values, which are pitch apart in src.
func WidenRows[T driver.B16 | driver.F16](dst []float32, src []T, rows, n, pitch int) {
	switch src := any(src).(type) {
	case []driver.B16:
		for r := range rows {
			d, s := dst[r*n:][:n], src[r*pitch:][:n]
			for i := widenB16Row(d, s); i < n; i++ {
				d[i] = s[i].Float32()
			}
		}
	case []driver.F16:
		for r := range rows {
			d, s := dst[r*n:][:n], src[r*pitch:][:n]
			for i := widenF16Row(d, s); i < n; i++ {
				d[i] = s[i].Float32()
			}
		}
	}
}

// NarrowRow is dst = src, rounded to the nearest, ties to even; src is as long.
func NarrowRow[T driver.B16 | driver.F16](dst []T, src []float32) {
	NarrowRows(dst, 0, src, 0, 1, len(dst))
}

// NarrowRows is NarrowRow for rows of n values, which are ds apart in dst and ss in src.
func NarrowRows[T driver.B16 | driver.F16](dst []T, ds int, src []float32, ss, rows, n int) {
	switch dst := any(dst).(type) {
	case []driver.B16:
		for r := range rows {
			d, s := dst[r*ds:][:n], src[r*ss:][:n]
			for i := narrowB16Row(d, s); i < n; i++ {
				d[i] = driver.ToB16(s[i])
			}
		}
	case []driver.F16:
		for r := range rows {
			d, s := dst[r*ds:][:n], src[r*ss:][:n]
			for i := narrowF16Row(d, s); i < n; i++ {
				d[i] = driver.ToF16(s[i])
			}
		}
	}
}

// RoundRow rounds each element of src to one of its two neighbours, by 16 bits of numbers, the lower half of each first:
// up, away from 0, with the part of the way there that it has gone, so that the mean is it (Gupta et al., 2015). A
// bfloat16, an infinity and a NaN stay what they are.
func RoundRow(dst []driver.B16, src []float32, numbers []uint32) {
	src, numbers = src[:len(dst)], numbers[:(len(dst)+1)/2]
	for i := roundB16Row(dst, src, numbers); i < len(dst); i++ {
		x := src[i]
		dst[i] = driver.ToB16(x)
		if x == x {
			dst[i] = driver.B16((math.Float32bits(x) + numbers[i/2]>>(i%2*16)&0xffff) >> 16)
		}
	}
}
