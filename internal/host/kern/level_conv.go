package kern

func convKernel[T floating]() convTiles[T] {
	if k, ok := any(convTilesAsm).(func(int, []T, []T, []int32, []T, int, []tile, bool)); ok && avx2 {
		return k
	}
	return convTilesGo[T]
}

func weightKernel[T floating]() weightTile[T] {
	if k, ok := any(weightTileAsm).(func(int, int, []T, int, []int32, []T, []T)); ok && avx2 {
		return k
	}
	return weightTileGo[T]
}

func dotKernel[T floating]() dotTiles[T] {
	if k, ok := any(convDotsAsm).(func([]T, []T, []int32, []T, []tile)); ok && avx2 {
		return k
	}
	return dotTilesGo[T]
}

// transpose makes dst[i·pitch + row] of src[row·distance + i] for i up to a multiple of 8, which it returns, and up to 8
// rows. It may write all 8 values at dst[i·pitch], zeros where there is no row.
func transpose[T floating](n int, src []T, distance, rows int, dst []T, pitch int) int {
	if k, ok := any(transposeAsm).(func(int, []T, int, int, []T, int)); ok && avx2 && n >= 8 {
		k(n/8, src, distance, rows, dst, pitch)
		return n / 8 * 8
	}
	return 0
}

// takeEven makes dst[i] of src[2i] up to an i, which it returns.
func takeEven[T floating](dst, src []T) int {
	if k, ok := any(takeEvenAsm).(func(int, []T, []T)); ok && avx2 && len(dst) > 8 {
		n := (len(dst) - 1) / 8 // an odd value is read after the last even one
		k(n, src, dst)
		return 8 * n
	}
	return 0
}

// putEven makes dst[2i] of src[i] up to an i, which it returns.
func putEven[T floating](dst, src []T) int {
	if k, ok := any(putEvenAsm).(func(int, []T, []T)); ok && avx2 && len(src) > 8 {
		n := (len(src) - 1) / 8
		k(n, src, dst)
		return 8 * n
	}
	return 0
}
