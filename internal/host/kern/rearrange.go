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

// gatherLines copies every stride-th value, n of them, of each of some lines, which are sp and dp apart. What follows a
// line in dst may become zero, up to a vector.
func gatherLines[T floating](lines, n, stride int, src []T, sp int, dst []T, dp int) {
	if lines <= 0 || n <= 0 {
		return
	}
	f := pick[func(int, int, []T, int, []T, int)](copyLinesAsm, nil)
	if stride > 1 {
		f = pick[func(int, int, []T, int, []T, int)](gatherLinesAsm, nil)
	}
	if f != nil && stride <= 2 {
		f(lines, n, src, sp, dst, dp)
		return
	}
	for l := range lines {
		d, s := dst[l*dp:][:n], src[l*sp:]
		for q := range d {
			d[q] = s[q*stride]
		}
	}
}

// scatterLines is the reverse of gatherLines, and writes nothing else.
func scatterLines[T floating](lines, n, stride int, src []T, sp int, dst []T, dp int) {
	if lines <= 0 || n <= 0 {
		return
	}
	if f := pick[func(int, int, []T, int, []T, int)](scatterLinesAsm, nil); f != nil && stride == 2 {
		f(lines, n, src, sp, dst, dp)
		return
	}
	for l := range lines {
		d := dst[l*dp:]
		for q, v := range src[l*sp:][:n] {
			d[q*stride] = v
		}
	}
}
