//go:build !amd64 || race

package kern

var gemmAsm32, gemmAsm64, copyRowsAsm, gemm512F32, gemm512F64 any

// Never called: the level is portable.

var gemm512B16 gemmKernel[float32]

func pack512[T Elem, F floating](kind packing, dst []F, pitch int, src []T, si, sp, n, k int) int {
	return 0
}

func dots512(m, n, k int, a []float32, ars, acs int, b []float32, bs int, c []float32, ldc int, d []float32, ldd int) {
}

func product512(m, n, k int, a []float32, ars, acs int, b []float32, bs int, c []float32, ldc int, acc bool) {
}
