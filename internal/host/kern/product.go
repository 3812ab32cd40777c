package kern

import "unsafe"

// Product computes c = a·b, for a of m×k and b of k×n, plus c if acc, reading operands where they are: it is for those
// that are in the cache and small, which packing would cost more than it brings. The columns of b and c are neighbours.
func Product[T floating](m, n, k int, a, b, c Mat[T], acc bool) {
	if k == 0 && !acc {
		for i := range m {
			clear(c.Data[i*c.RS:][:n])
		}
	}
	if m == 0 || n == 0 || k == 0 {
		return
	}
	if f := same[float32](c.Data); f != nil && level >= avx512 {
		product512(m, n, k, same[float32](a.Data), a.RS, a.CS, same[float32](b.Data), b.RS, f, c.RS, acc)
		return
	}
	kernel, _ := gemmKernelOf[T, T]()
	panels := (m + kernel.rows - 1) / kernel.rows
	for j := 0; j < n; j += kernel.cols {
		for i := range panels {
			r0, r1 := i*m/panels, (i+1)*m/panels
			to := c.Data[r0*c.RS+j:]
			var d []T
			if acc {
				d = to
			}
			kernel.tile(r1-r0, min(kernel.cols, n-j), k, a.Data[r0*a.RS:], a.RS, a.CS, b.Data[j:], b.RS, to, c.RS, d, c.RS)
		}
	}
}

// Columns makes dst[p·pitch + i] of row i and column p of src, for m rows and n columns. It may write a few elements more:
// PackSlack.
func Columns[T floating](dst []T, pitch int, src Mat[T], m, n int) {
	var z T
	kind, most := packF32, 16 // rows at a time: at most two vectors
	if unsafe.Sizeof(z) == 8 {
		kind = packF64
	} else if level >= avx512 {
		most = 32
	}
	for i := 0; i < m && n > 0; i += most {
		pack(kind, dst[i:], pitch, src.Data[i*src.RS:], src.RS, src.CS, min(most, m-i), n)
	}
}

// PackSlack is how many elements after its result Columns may write.
const PackSlack = gemmSlack
