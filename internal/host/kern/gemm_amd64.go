//go:build !race

package kern

import "unsafe"

var (
	gemmAsm32   = gemmKernel[float32]{6, 16, gemmTile32, nil}
	gemmAsm64   = gemmKernel[float64]{6, 8, gemmTile64, nil}
	copyRowsAsm = copyRows32
)

type (
	gemmFunc32 = func(k int, a *float32, ars, acs int, b *float32, bs int, c *float32, ldc int, d *float32, ldd int, mask *byte)
	gemmFunc64 = func(k int, a *float64, ars, acs int, b *float64, bs int, c *float64, ldc int, d *float64, ldd int, mask *byte)
)

// By the vectors of columns, the last of them full or not, and the rows.
var (
	gemm32x2  = [7]gemmFunc32{nil, gemmF32x1x2, gemmF32x2x2, gemmF32x3x2, gemmF32x4x2, gemmF32x5x2, gemmF32x6x2}
	gemm32x2m = [7]gemmFunc32{nil, gemmF32x1x2m, gemmF32x2x2m, gemmF32x3x2m, gemmF32x4x2m, gemmF32x5x2m, gemmF32x6x2m}
	gemm32x1m = [7]gemmFunc32{nil, gemmF32x1x1m, gemmF32x2x1m, gemmF32x3x1m, gemmF32x4x1m, gemmF32x5x1m, gemmF32x6x1m}
	gemm64x2  = [7]gemmFunc64{nil, gemmF64x1x2, gemmF64x2x2, gemmF64x3x2, gemmF64x4x2, gemmF64x5x2, gemmF64x6x2}
	gemm64x2m = [7]gemmFunc64{nil, gemmF64x1x2m, gemmF64x2x2m, gemmF64x3x2m, gemmF64x4x2m, gemmF64x5x2m, gemmF64x6x2m}
	gemm64x1m = [7]gemmFunc64{nil, gemmF64x1x1m, gemmF64x2x1m, gemmF64x3x1m, gemmF64x4x1m, gemmF64x5x1m, gemmF64x6x1m}
)

func gemmTile32(rows, cols, k int, a []float32, ars, acs int, b []float32, bs int, c []float32, ldc int, d []float32, ldd int) {
	kernel := gemm32x2[rows]
	switch {
	case cols <= 8:
		kernel = gemm32x1m[rows]
	case cols < 16:
		kernel = gemm32x2m[rows]
	}
	kernel(k, &a[0], ars*4, acs*4, &b[0], bs*4, &c[0], ldc*4, unsafe.SliceData(d), ldd*4, firstLanes((cols-1)%8*4+4))
}

func gemmTile64(rows, cols, k int, a []float64, ars, acs int, b []float64, bs int, c []float64, ldc int, d []float64, ldd int) {
	kernel := gemm64x2[rows]
	switch {
	case cols <= 4:
		kernel = gemm64x1m[rows]
	case cols < 8:
		kernel = gemm64x2m[rows]
	}
	kernel(k, &a[0], ars*8, acs*8, &b[0], bs*8, &c[0], ldc*8, unsafe.SliceData(d), ldd*8, firstLanes((cols-1)%4*8+8))
}

func copyRows32(dst []float32, pitch int, src []float32, distance, n, k int) {
	kernel := copyF32x2
	switch {
	case n <= 8:
		kernel = copyF32x1m
	case n < 16:
		kernel = copyF32x2m
	}
	kernel(k, &src[0], distance*4, &dst[0], pitch*4, firstLanes((n-1)%8*4+4))
}

var lanesTable = func() (t [64]byte) {
	for i := range 32 {
		t[i] = 0xff
	}
	return
}()

// firstLanes is the mask of a vector's first n bytes.
func firstLanes(n int) *byte { return &lanesTable[32-n] }
