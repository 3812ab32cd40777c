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

// sideBySideAsm reports how many pixels it has done.
func sideBySideAsm[T floating](dst, src []T, rows, distance, pixels int) int { return 0 }
