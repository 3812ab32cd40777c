package kern

// transpose makes dst[i·pitch + row] of src[row·distance + i] for i up to a multiple of 8, which it returns, and up to 8
// rows. It may write all 8 values at dst[i·pitch], zeros where there is no row.
func transpose[T floating](n int, src []T, distance, rows int, dst []T, pitch int) int {
	f := pick[func(int, []T, int, int, []T, int)](transposeAsm, nil)
	if f == nil || n < 8 {
		return 0
	}
	f(n/8, src, distance, rows, dst, pitch)
	return n / 8 * 8
}

// gather takes every stride-th value of src.
func gather[T floating](dst, src []T, stride int) {
	done := 0
	if f := pick[func(int, []T, []T)](takeEvenAsm, nil); f != nil && stride == 2 && len(dst) > 8 {
		blocks := (len(dst) - 1) / 8 // of the last one an odd value is read, too
		f(blocks, src, dst)
		done = 8 * blocks
	}
	for q := done; q < len(dst); q++ {
		dst[q] = src[q*stride]
	}
}

// scatter is the reverse of gather.
func scatter[T floating](dst, src []T, stride int) {
	done := 0
	if f := pick[func(int, []T, []T)](putEvenAsm, nil); f != nil && stride == 2 && len(src) > 8 {
		blocks := (len(src) - 1) / 8
		f(blocks, src, dst)
		done = 8 * blocks
	}
	for q := done; q < len(src); q++ {
		dst[q*stride] = src[q]
	}
}
