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

// UniformRow makes numbers in [0, 1) of the 24 upper bits of random ones, times scale, plus shift, rounded after each step.
func UniformRow(dst []float32, numbers []uint32, scale, shift float64) {
	numbers = numbers[:len(dst)]
	i := 0
	if n := len(dst) / 4; level >= avx2 && n > 0 {
		s := [2]float64{scale / (1 << 24), shift}
		uniformVec(n, &dst[0], &numbers[0], &s[0])
		i = 4 * n
	}
	for ; i < len(dst); i++ {
		dst[i] = float32(float64(driver.Unit(numbers[i])*scale) + shift)
	}
}

// NormalRow makes normal numbers in pairs of the 24 upper bits of random ones (Box and Muller, 1958), times scale, plus
// shift.
func NormalRow(dst []float32, numbers []uint32, scale, shift float64) {
	numbers = numbers[:len(dst)+len(dst)%2]
	n := len(dst) &^ 1
	if level >= avx2 {
		s := [2]float32{float32(scale), float32(shift)}
		normalVec(n, first(dst), (*float32)(unsafe.Pointer(unsafe.SliceData(numbers))), &s[0])
		if n < len(dst) {
			var last [2]float32
			normalVec(2, &last[0], (*float32)(unsafe.Pointer(&numbers[n])), &s[0])
			dst[n] = last[0]
		}
		return
	}
	for i := 0; i < len(dst); i += 2 {
		sin, cos := math.Sincos(2 * math.Pi * driver.Unit(numbers[i+1]))
		r := math.Sqrt(-2 * math.Log(1-driver.Unit(numbers[i])))
		for j, v := range []float64{r * cos, r * sin}[:min(2, len(dst)-i)] {
			dst[i+j] = float32(float64(v*scale) + shift)
		}
	}
}
