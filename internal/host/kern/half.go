package kern

import "github.com/snug-ml/snug/internal/driver"

//go:generate go -C gen run ./half -out ../half_amd64.s -stubs ../half_stubs_amd64.go -pkg kern

// WidenRow is dst = src; dst is as long.
func WidenRow[T driver.B16 | driver.F16](dst []float32, src []T) {
	dst = dst[:len(src)]
	switch src := any(src).(type) {
	case []driver.B16:
		for i := widenB16Row(dst, src); i < len(src); i++ {
			dst[i] = src[i].Float32()
		}
	case []driver.F16:
		for i := widenF16Row(dst, src); i < len(src); i++ {
			dst[i] = src[i].Float32()
		}
	}
}

// NarrowRow is dst = src, rounded to the nearest, ties to even; src is as long.
func NarrowRow[T driver.B16 | driver.F16](dst []T, src []float32) {
	src = src[:len(dst)]
	switch dst := any(dst).(type) {
	case []driver.B16:
		for i := narrowB16Row(dst, src); i < len(dst); i++ {
			dst[i] = driver.ToB16(src[i])
		}
	case []driver.F16:
		for i := narrowF16Row(dst, src); i < len(dst); i++ {
			dst[i] = driver.ToF16(src[i])
		}
	}
}
