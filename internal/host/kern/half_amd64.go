//go:build !race

package kern

import (
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
)

// Each function reports how many elements it has done.

func widenB16Row(dst []float32, src []driver.B16) int {
	n := len(src) / 8
	switch {
	case len(src) > 0 && level >= avx512:
		widenB16z(len(src), (*uint16)(&src[0]), &dst[0])
		return len(src)
	case level < avx2 || n == 0:
		return 0
	}
	widenB16(n, (*uint16)(&src[0]), &dst[0])
	return n * 8
}

func widenF16Row(dst []float32, src []driver.F16) int {
	n := len(src) / 8
	switch {
	case len(src) > 0 && level >= avx512:
		widenF16z(len(src), (*uint16)(&src[0]), &dst[0])
		return len(src)
	case level < avx2 || n == 0:
		return 0
	}
	widenF16(n, (*uint16)(&src[0]), &dst[0])
	return n * 8
}

func narrowB16Row(dst []driver.B16, src []float32) int {
	n := len(src) / 8
	switch {
	case len(src) > 0 && level >= avx512:
		narrowB16z(len(src), &src[0], (*uint16)(&dst[0]))
		return len(src)
	case level < avx2 || n == 0:
		return 0
	}
	narrowB16(n, &src[0], (*uint16)(&dst[0]))
	return n * 8
}

func narrowF16Row(dst []driver.F16, src []float32) int {
	n := len(src) / 8
	switch {
	case len(src) > 0 && level >= avx512:
		narrowF16z(len(src), &src[0], (*uint16)(&dst[0]))
		return len(src)
	case level < avx2 || n == 0:
		return 0
	}
	narrowF16(n, &src[0], (*uint16)(&dst[0]))
	return n * 8
}

func roundB16Row(dst []driver.B16, src []float32, numbers []uint32) int {
	n := len(src) / 8
	if level < avx2 || n == 0 {
		return 0
	}
	roundB16(n, &src[0], (*uint16)(&dst[0]), (*uint16)(unsafe.Pointer(&numbers[0])))
	return n * 8
}
