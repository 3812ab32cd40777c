package kern

import "math"

//go:generate go -C gen run ./attend -out ../attend_amd64.s -stubs ../attend_stubs_amd64.go -pkg kern

// AttendLanes is how many queries attention works on at a time: in its scores each key has a row, and each query a column,
// so that nothing is ever summed across the lanes of a vector.
const AttendLanes = 32

// AttendColumns makes s = e^(scale·(s − top)), where top is the greatest of each column. Of the columns' sums it writes the
// inverse to by, and scale·top + ln sum to sums.
func AttendColumns[T floating](s []T, scale T, sums, by *[AttendLanes]T) {
	n := len(s) / AttendLanes
	if f := same[float32](s); f != nil && level >= avx2 {
		kernel := attendColumns256
		if level >= avx512 {
			kernel = attendColumns512
		}
		kernel(n, &f[0], float32(scale)*math.Log2E, float32(scale), &same[float32](sums[:])[0], &same[float32](by[:])[0])
		return
	}
	var top [AttendLanes]T
	for l := range top {
		top[l], by[l] = T(math.Inf(-1)), 0
	}
	for i, v := range s {
		l := i % AttendLanes
		top[l] = max(top[l], v)
	}
	for i, v := range s {
		l := i % AttendLanes
		s[i] = T(math.Exp(float64(scale * (v - top[l]))))
		by[l] += s[i]
	}
	for l, sum := range by {
		sums[l], by[l] = scale*top[l]+T(math.Log(float64(sum))), 1/sum
	}
}

// AttendBackColumns is s = e^(scale·s − sums) and then d = s·(d − inner)·scale, with a number of sums and inner for each column.
func AttendBackColumns[T floating](s, d []T, scale T, sums, inner *[AttendLanes]T) {
	n := len(s) / AttendLanes
	d = d[:len(s)]
	if f := same[float32](s); f != nil && level >= avx2 {
		var powers [AttendLanes]float32 // of 2; by way of a variable, the kernel would have it on the heap
		for l, v := range sums {
			powers[l] = float32(v) * math.Log2E
		}
		g, by, power, scale := &same[float32](d)[0], &same[float32](inner[:])[0], float32(scale)*math.Log2E, float32(scale)
		if level >= avx512 {
			attendBackColumns512(n, &f[0], g, power, scale, &powers[0], by)
		} else {
			attendBackColumns256(n, &f[0], g, power, scale, &powers[0], by)
		}
		return
	}
	for i, v := range s {
		l := i % AttendLanes
		s[i] = T(math.Exp(float64(scale*v - sums[l])))
		d[i] = s[i] * (d[i] - inner[l]) * scale
	}
}

// ScaleRows multiplies each row of x, of n columns that are neighbours, by a number of its own.
func ScaleRows[T floating](x Mat[T], n int, by []T) {
	if f := same[float32](by); f != nil && level >= avx512 && len(by) > 0 && n > 0 {
		scaleRows512(len(by), n, &same[float32](x.Data)[0], x.RS*4, &f[0], tail512(n))
		return
	}
	for r, v := range by {
		row := x.Data[r*x.RS:][:n]
		if f := same[float32](row); f != nil {
			ScaleRow(f, f, float32(v))
			continue
		}
		for i := range row {
			row[i] *= v
		}
	}
}

// DotRows writes the products of rows of x with those of y, of n columns that are neighbours.
func DotRows[T floating](out []T, x, y Mat[T], n int) {
	if f := same[float32](out); f != nil && level >= avx512 && len(out) > 0 && n > 0 {
		dotRows512(len(out), n, &same[float32](x.Data)[0], x.RS*4, &same[float32](y.Data)[0], y.RS*4, &f[0], tail512(n))
		return
	}
	for r := range out {
		var sum float64
		for i := range n {
			sum += float64(x.Data[r*x.RS+i]) * float64(y.Data[r*y.RS+i])
		}
		out[r] = T(sum)
	}
}

// tail512 is the mask of the last of n elements, in the last vector.
func tail512(n int) uint32 { return 1<<(n%16) - 1 }
