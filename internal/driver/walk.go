package driver

// Collapse joins dimensions that lie one after the other, so that what is left is as few
// and as long as it can be. Dimensions of length 1 vanish.
func Collapse(shape, strides []int) (s, st []int) {
	for i, d := range shape {
		if d == 1 {
			continue
		}
		if n := len(s); n > 0 && st[n-1] == d*strides[i] {
			s[n-1] *= d
			st[n-1] = strides[i]
			continue
		}
		s, st = append(s, d), append(st, strides[i])
	}
	return s, st
}

// Runs cuts the elements lo to hi, counted row-major, into runs of equal stride: fn gets
// where a run begins, its stride and its length. Collapsed shapes make the longest runs.
func Runs(shape, strides []int, lo, hi int, fn func(off, stride, n int)) {
	if lo >= hi {
		return
	}
	last := len(shape) - 1
	if last < 0 {
		fn(0, 0, 1)
		return
	}
	var buf [12]int
	at := buf[:0] // the index of the run's row
	row := lo / shape[last]
	for i := range last {
		n := 1
		for _, d := range shape[i+1 : last] {
			n *= d
		}
		at = append(at, row/n%shape[i])
	}
	off := 0
	for i, x := range at {
		off += x * strides[i]
	}
	col := lo % shape[last]
	for {
		n := min(shape[last]-col, hi-lo)
		fn(off+col*strides[last], strides[last], n)
		if lo += n; lo >= hi {
			return
		}
		col = 0
		for i := last - 1; i >= 0; i-- {
			at[i]++
			off += strides[i]
			if at[i] < shape[i] {
				break
			}
			off -= at[i] * strides[i]
			at[i] = 0
		}
	}
}

// Gather reads all elements row-major.
func Gather[T Elem](dst []T, a *Array) {
	src := Of[T](a)
	shape, strides := Collapse(a.Shape, a.Strides)
	Runs(shape, strides, 0, len(dst), func(off, stride, n int) {
		if stride == 1 {
			copy(dst[:n], src[off:])
		} else {
			for i := range dst[:n] {
				dst[i] = src[off+i*stride]
			}
		}
		dst = dst[n:]
	})
}

// GatherFloat reads all elements of any type row-major as numbers.
func GatherFloat[F float32 | float64](dst []F, a *Array) {
	var at func(i int) F
	switch a.Type {
	case Float32:
		at = reader[F](Of[float32](a))
	case Float64:
		at = reader[F](Of[float64](a))
	case Int64:
		at = reader[F](Of[int64](a))
	case Int32:
		at = reader[F](Of[int32](a))
	case Uint8, Bool:
		at = reader[F](Of[uint8](a))
	case BFloat16:
		v := Of[B16](a)
		at = func(i int) F { return F(v[i].Float32()) }
	case Float16:
		v := Of[F16](a)
		at = func(i int) F { return F(v[i].Float32()) }
	}
	Runs(a.Shape, a.Strides, 0, len(dst), func(off, stride, n int) {
		for i := range dst[:n] {
			dst[i] = at(off + i*stride)
		}
		dst = dst[n:]
	})
}

func reader[F float32 | float64, T float32 | float64 | int64 | int32 | uint8](v []T) func(int) F {
	return func(i int) F { return F(v[i]) }
}
