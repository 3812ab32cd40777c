package kern

//go:generate go -C gen run ./pool -out ../pool_amd64.s -stubs ../pool_stubs_amd64.go -pkg kern

// MaxPoolRow writes the maxima of windows side by side and their places: window j has the elements x[r·width + j·stride + c]
// for r below rows and c below kernel, whose places are first + r·kernel + c, below 256. Of equal ones the first is taken, of
// those that are no numbers the last. It returns how many windows it did; the others, which may be all, are left to who
// calls.
func MaxPoolRow(dst []float32, place []uint8, x []float32, width, rows, kernel, stride, first int) int {
	n := min(len(dst), len(place))
	if stride == 2 && (rows-1)*width+2*n+kernel > len(x)+1 { // its last vector would end beyond x
		n--
	}
	if level < avx2 || n < 8 || stride > 2 || rows < 1 {
		return 0
	}
	pool := maxPool1
	if stride == 2 {
		pool = maxPool2
	}
	pool(n/8, &dst[0], &place[0], &x[0], width, rows, kernel, first)
	if n%8 > 0 { // the last eight, some of them a second time
		pool(1, &dst[n-8], &place[n-8], &x[(n-8)*stride], width, rows, kernel, first)
	}
	return n
}
