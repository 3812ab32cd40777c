package kern

// goVector is how many pixels the kernels in Go read at once.
const goVector = 8

// convTilesGo computes tiles of `rows` channels: dst[i·ldc + pixel] (+)= Σ_k w[k, i] · src[pixel + off[k]].
func convTilesGo[T floating](rows int, w, src []T, off []int32, dst []T, ldc int, tiles []tile, add bool) {
	for _, t := range tiles {
		convVectorGo(rows, w, src[t.src:], off, dst[t.dst:], ldc, int(t.n), add)
		if width := int(t.n2); width > 0 {
			convVectorGo(rows, w, src[t.src+t.src2:], off, dst[t.dst+t.dst2:], ldc, width, add)
		}
	}
}

func convVectorGo[T floating](rows int, w, src []T, off []int32, dst []T, ldc, width int, add bool) {
	for i := range rows {
		var s [goVector]T
		for k, o := range off {
			v, x := w[k*rows+i], (*[goVector]T)(src[o:])
			for j := range s {
				s[j] += T(v * x[j])
			}
		}
		d := dst[i*ldc:][:width]
		for j := range d {
			if add {
				d[j] += s[j]
			} else {
				d[j] = s[j]
			}
		}
	}
}
