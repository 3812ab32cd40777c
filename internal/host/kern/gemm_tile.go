package kern

import "github.com/snug-ml/snug/internal/driver"

// A gemmKernel computes a tile of a product, c = a·b + d, of at most so many rows and columns. Distances are in
// elements. The columns of b, c and d are neighbours; d may be nil, or c itself.
type gemmKernel[F floating] struct {
	rows, cols int
	tile       func(rows, cols, k int, a []F, ars, acs int, b []F, bs int, c []F, ldc int, d []F, ldd int)
	// round is tile with a result of bfloat16; nil: sums are rounded afterwards.
	round func(rows, cols, k int, a []F, ars, acs int, b []F, bs int, c []driver.B16, ldc int, d []F, ldd int)
}

// gemmAsm are the kernels in assembly, in an interface once: a small product has no time to make one.
var gemmAsm = [...]struct {
	level  int
	kernel any
}{{avx512, gemm512F32}, {avx512, gemm512F64}, {avx2, gemmAsm32}, {avx2, gemmAsm64}}

// gemmKernelOf is the kernel for products of elements T, computed in F, and how its operands are packed.
func gemmKernelOf[T Elem, F floating]() (gemmKernel[F], packing) {
	var t T
	kind := packF32
	switch any(t).(type) {
	case float64:
		kind = packF64
	case driver.F16:
		kind = packF16
	case driver.B16:
		if kind = packB16; level >= avx512bf16 {
			return any(gemm512B16).(gemmKernel[F]), packPairs
		}
	}
	for _, asm := range gemmAsm {
		if k, ok := asm.kernel.(gemmKernel[F]); ok && level >= asm.level {
			return k, kind
		}
	}
	return gemmKernel[F]{4, 8, gemmTileGo[F], nil}, kind // panels as wide as what is transposed at a time
}

// gemmTileGo keeps two by four sums in registers. The conversions keep the compiler from fusing, in some loops and not
// in others, a product with its sum.
func gemmTileGo[F floating](rows, cols, k int, a []F, ars, acs int, b []F, bs int, c []F, ldc int, d []F, ldd int) {
	for i := range rows {
		for j := range cols {
			if i|1 < rows && j|3 < cols {
				if i&1 == 0 && j&3 == 0 {
					gemmTwoByFour(k, a[i*ars:], ars, acs, b[j:], bs, c[i*ldc+j:], ldc, d, i*ldd+j, ldd)
				}
				continue
			}
			var s F
			for p := range k {
				s += F(a[i*ars+p*acs] * b[p*bs+j])
			}
			if d != nil {
				s += d[i*ldd+j]
			}
			c[i*ldc+j] = s
		}
	}
}

func gemmTwoByFour[F floating](k int, a []F, ars, acs int, b []F, bs int, c []F, ldc int, d []F, at, ldd int) {
	var s00, s01, s02, s03, s10, s11, s12, s13 F
	x, y := a, a[ars:]
	for p := range k {
		v, w, r := x[p*acs], y[p*acs], (*[4]F)(b[p*bs:])
		s00 += F(v * r[0])
		s01 += F(v * r[1])
		s02 += F(v * r[2])
		s03 += F(v * r[3])
		s10 += F(w * r[0])
		s11 += F(w * r[1])
		s12 += F(w * r[2])
		s13 += F(w * r[3])
	}
	r := [2][4]F{{s00, s01, s02, s03}, {s10, s11, s12, s13}}
	for i := range r {
		for j, v := range r[i] {
			if d != nil {
				v += d[at+i*ldd+j]
			}
			c[i*ldc+j] = v
		}
	}
}
