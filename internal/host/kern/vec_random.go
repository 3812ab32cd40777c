package kern

import (
	"math"
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
)

// Philox fills dst with the numbers of driver.Philox from a block on.
func Philox(dst []uint32, key [3]uint64, block uint64) {
	const most = 128 // numbers at a time
	n := (len(dst) + most - 1) / most
	if level >= avx2 && n > 0 && uint64(uint32(block))+uint64(most/4*n) <= 1<<32 {
		start := [6]uint32{uint32(block), uint32(block >> 32), uint32(key[1]), uint32(key[2]), uint32(key[0]), uint32(key[0] >> 32)}
		whole := len(dst) / most
		if whole > 0 {
			philoxVec(whole, &dst[0], &start[0])
		}
		if whole < n {
			var last [most]uint32
			philoxVec(1, &last[0], &start[0])
			copy(dst[most*whole:], last[:])
		}
		return
	}
	for ; len(dst) > 0; block++ {
		b := driver.Philox(key, block)
		dst = dst[copy(dst, b[:]):]
	}
}

// DropRow is dst = x·scale, or 0 where the 24 upper bits of a number, as a fraction of 1, are below p.
func DropRow(dst, x []float32, numbers []uint32, p float64, scale float32) {
	x, numbers = x[:len(dst)], numbers[:len(dst)]
	most := int32(math.Ceil(p*(1<<24))) - 1 // that drops
	if level >= avx2 {
		s := [2]float32{scale, math.Float32frombits(uint32(most))}
		dropVec(len(dst), first(dst), first(x), (*float32)(unsafe.Pointer(unsafe.SliceData(numbers))), &s[0])
		return
	}
	for i, b := range numbers {
		if dst[i] = 0; int32(b>>8) > most {
			dst[i] = x[i] * scale
		}
	}
}
