//go:build !race

package kern

import (
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
)

var (
	gemm512F32 = gemmKernel[float32]{14, 32, tile512F32, nil}
	gemm512F64 = gemmKernel[float64]{14, 16, tile512F64, nil}
	gemm512B16 = gemmKernel[float32]{14, 32, tile512B16, round512B16} // its operands are pairs of bfloat16
)

type (
	gemm512Func32 = func(k int, a *float32, ars, acs int, b *float32, bs int, c *float32, ldc int, d *float32, ldd int, mask uint32)
	gemm512Func64 = func(k int, a *float64, ars, acs int, b *float64, bs int, c *float64, ldc int, d *float64, ldd int, mask uint32)
)

// By the vectors of columns, and the rows.
var (
	gemmF32zx1 = [...]gemm512Func32{nil,
		gemmF32z1x1, gemmF32z2x1, gemmF32z3x1, gemmF32z4x1, gemmF32z5x1, gemmF32z6x1, gemmF32z7x1,
		gemmF32z8x1, gemmF32z9x1, gemmF32z10x1, gemmF32z11x1, gemmF32z12x1, gemmF32z13x1, gemmF32z14x1,
	}
	gemmF32zx2 = [...]gemm512Func32{nil,
		gemmF32z1x2, gemmF32z2x2, gemmF32z3x2, gemmF32z4x2, gemmF32z5x2, gemmF32z6x2, gemmF32z7x2,
		gemmF32z8x2, gemmF32z9x2, gemmF32z10x2, gemmF32z11x2, gemmF32z12x2, gemmF32z13x2, gemmF32z14x2,
	}
	gemmF32zx6 = [...]gemm512Func32{nil,
		gemmF32z1x6, gemmF32z2x6, gemmF32z3x6, gemmF32z4x6,
	}
	gemmF64zx1 = [...]gemm512Func64{nil,
		gemmF64z1x1, gemmF64z2x1, gemmF64z3x1, gemmF64z4x1, gemmF64z5x1, gemmF64z6x1, gemmF64z7x1,
		gemmF64z8x1, gemmF64z9x1, gemmF64z10x1, gemmF64z11x1, gemmF64z12x1, gemmF64z13x1, gemmF64z14x1,
	}
	gemmF64zx2 = [...]gemm512Func64{nil,
		gemmF64z1x2, gemmF64z2x2, gemmF64z3x2, gemmF64z4x2, gemmF64z5x2, gemmF64z6x2, gemmF64z7x2,
		gemmF64z8x2, gemmF64z9x2, gemmF64z10x2, gemmF64z11x2, gemmF64z12x2, gemmF64z13x2, gemmF64z14x2,
	}
	gemmF64zx6 = [...]gemm512Func64{nil,
		gemmF64z1x6, gemmF64z2x6, gemmF64z3x6, gemmF64z4x6,
	}
	gemmB16zx1 = [...]gemm512Func32{nil,
		gemmB16z1x1, gemmB16z2x1, gemmB16z3x1, gemmB16z4x1, gemmB16z5x1, gemmB16z6x1, gemmB16z7x1,
		gemmB16z8x1, gemmB16z9x1, gemmB16z10x1, gemmB16z11x1, gemmB16z12x1, gemmB16z13x1, gemmB16z14x1,
	}
	gemmB16zx2 = [...]gemm512Func32{nil,
		gemmB16z1x2, gemmB16z2x2, gemmB16z3x2, gemmB16z4x2, gemmB16z5x2, gemmB16z6x2, gemmB16z7x2,
		gemmB16z8x2, gemmB16z9x2, gemmB16z10x2, gemmB16z11x2, gemmB16z12x2, gemmB16z13x2, gemmB16z14x2,
	}
)

func tile512F32(rows, cols, k int, a []float32, ars, acs int, b []float32, bs int, c []float32, ldc int, d []float32, ldd int) {
	if cols <= 32 {
		kernel, mask := narrow512(&gemmF32zx1, &gemmF32zx2, rows, cols)
		kernel(k, &a[0], ars*4, acs*4, &b[0], bs*4, &c[0], ldc*4, unsafe.SliceData(d), ldd*4, mask)
		return
	}
	tile512(gemmF32zx1[:], gemmF32zx2[:], gemmF32zx6[:], 16, rows, cols, k, a, ars, acs, b, bs, c, ldc, d, ldd)
}

func tile512F64(rows, cols, k int, a []float64, ars, acs int, b []float64, bs int, c []float64, ldc int, d []float64, ldd int) {
	tile512(gemmF64zx1[:], gemmF64zx2[:], gemmF64zx6[:], 8, rows, cols, k, a, ars, acs, b, bs, c, ldc, d, ldd)
}

func tile512B16(rows, cols, k int, a []float32, ars, acs int, b []float32, bs int, c []float32, ldc int, d []float32, ldd int) {
	kernel, mask := narrow512(&gemmB16zx1, &gemmB16zx2, rows, cols)
	kernel(k, &a[0], ars*4, acs*4, &b[0], bs*4, &c[0], ldc*4, unsafe.SliceData(d), ldd*4, mask)
}

// narrow512 is the kernel for up to 32 columns, and the mask of its last vector.
func narrow512(x1, x2 *[15]gemm512Func32, rows, cols int) (gemm512Func32, uint32) {
	mask := uint32(1)<<((cols-1)%16+1) - 1
	if cols <= 16 {
		return x1[rows], mask
	}
	return x2[rows], mask
}

// round512B16 is tile512B16 for up to 32 columns, rounding its sums.
func round512B16(rows, cols, k int, a []float32, ars, acs int, b []float32, bs int, c []driver.B16, ldc int, d []float32, ldd int) {
	kernel, mask := narrow512(&gemmB16zx1, &gemmB16zx2, rows, cols)
	const rounds = 1 << 16
	kernel(k, &a[0], ars*4, acs*4, &b[0], bs*4, (*float32)(unsafe.Pointer(&c[0])), ldc*2, unsafe.SliceData(d), ldd*4, mask|rounds)
}

// tile512 takes any number of columns: by six vectors where the rows are few, and else by two.
func tile512[F floating](x1, x2, x6 []func(k int, a *F, ars, acs int, b *F, bs int, c *F, ldc int, d *F, ldd int, mask uint32),
	lanes, rows, cols, k int, a []F, ars, acs int, b []F, bs int, c []F, ldc int, d []F, ldd int) {
	size := 64 / lanes // of an element
	for at := 0; at < cols; {
		kernel, n := x2[rows], min(2*lanes, cols-at)
		switch {
		case rows < len(x6) && cols-at >= 6*lanes:
			kernel, n = x6[rows], 6*lanes
		case n <= lanes:
			kernel = x1[rows]
		}
		last := (n-1)%lanes + 1
		var from *F
		if d != nil {
			from = &d[at]
		}
		kernel(k, &a[0], ars*size, acs*size, &b[at], bs*size, &c[at], ldc*size, from, ldd*size, 1<<last-1)
		at += n
	}
}

// product512 is Product: what tile512 does for each tile would take longer than some of its.
func product512(m, n, k int, a []float32, ars, acs int, b []float32, bs int, c []float32, ldc int, acc bool) {
	panels := (m + 13) / 14
	for j := 0; j < n; j += 32 {
		kernels, mask := &gemmF32zx2, uint32(1)<<((n-j-1)%16+1)-1
		switch {
		case n-j >= 32:
			mask = 1<<16 - 1
		case n-j <= 16:
			kernels = &gemmF32zx1
		}
		for i := range panels {
			r0, r1 := i*m/panels, (i+1)*m/panels
			to := &c[r0*ldc+j]
			var d *float32
			if acc {
				d = to
			}
			kernels[r1-r0](k, &a[r0*ars], ars*4, acs*4, &b[j], bs*4, to, ldc*4, d, ldc*4, mask)
		}
	}
}
