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
	pool, block := maxPool1, 8
	switch wide := level >= avx512 && n >= 16; {
	case wide && stride == 2:
		pool, block = maxPool2z, 16
	case wide:
		pool, block = maxPool1z, 16
	case stride == 2:
		pool = maxPool2
	}
	pool(n/block, &dst[0], &place[0], &x[0], width, rows, kernel, first)
	if n%block > 0 { // the last ones, some of them a second time
		pool(1, &dst[n-block], &place[n-block], &x[(n-block)*stride], width, rows, kernel, first)
	}
	return n
}

// MaxPoolBack writes an image of rows of w elements: each is the sum, in order, of the gradients of those windows, oh rows of
// ow, that have their place there. It reports whether it did, or is left to who calls.
func MaxPoolBack(image, dy []float32, place []uint8, w, oh, ow, kernel, stride, padding int) bool {
	if level < avx512 || stride != 2 || kernel < 2 || kernel > 3 || padding > 1 || oh == 0 || ow == 0 {
		return false
	}
	dy, place = dy[:oh*ow], place[:oh*ow]
	back := maxPoolBack2
	if kernel == 3 {
		back = maxPoolBack3
	}
	for r := range len(image) / w {
		row := image[r*w:][:w]
		from := max(0, (r+padding-kernel+2)/2) // rows of windows that have it
		rows := min(oh-1, (r+padding)/2) + 1 - from
		if rows <= 0 {
			clear(row)
			continue
		}
		back(&row[0], &dy[from*ow], &place[from*ow], w, ow, rows, (r+padding-2*from)*kernel, padding)
	}
	return true
}
