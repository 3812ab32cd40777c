//go:build !race

package kern

import "unsafe"

// pack512 is pack in AVX-512; it reports how much of the depth it has done.
func pack512[T Elem, F floating](kind packing, dst []F, pitch int, src []T, si, sp, n, k int) int {
	from, size := unsafe.Pointer(&src[0]), int(unsafe.Sizeof(src[0]))
	to, ds := unsafe.Pointer(&dst[0]), pitch*int(unsafe.Sizeof(dst[0]))
	switch {
	case kind == packPairs && si == 1:
		if k > 1 {
			copies512(kind, n, k/2, from, sp*size, to, ds)
		}
		return k &^ 1
	case kind == packPairs && sp == 1 && k >= 8:
		columns512(packF32, n, k/2, from, si*size, to, ds)
		return k &^ 1
	case kind == packPairs:
		return 0
	case si == 1:
		copies512(kind, n, k, from, sp*size, to, ds)
		return k
	case sp == 1 && k >= 16/size:
		columns512(kind, n, k, from, si*size, to, ds)
		return k
	}
	return 0
}

// columns512 packs n rows of k neighbours, at least a block of 16 bytes.
func columns512(kind packing, n, k int, src unsafe.Pointer, ss int, dst unsafe.Pointer, ds int) {
	size, lanes := 4, 16 // of what is stored; of a vector of what is packed
	switch kind {
	case packF64:
		size, lanes = 8, 8
	case packB16, packF16:
		size = 2
	}
	block := 16 / size
	for i := 0; i < n; i += lanes {
		rows, s, d := min(lanes, n-i), unsafe.Add(src, i*ss), unsafe.Add(dst, i*64/lanes)
		blocks512(kind, k/block, rows, s, ss, d, ds)
		if k%block > 0 { // the last block ends with the rows, and may do part of the one before again
			blocks512(kind, 1, rows, unsafe.Add(s, (k-block)*size), ss, unsafe.Add(d, (k-block)*ds), ds)
		}
	}
}

// orders are, by how many rows there are, where the lanes of loaded columns come from; see blocks512.
var (
	orders32 = ordersOf(16, 4, func(o []int) (v [16]uint32) {
		for i, l := range o {
			v[i] = uint32(l)
		}
		return v
	})
	orders64 = ordersOf(8, 2, func(o []int) (v [16]uint32) {
		for i, l := range o {
			v[2*i] = uint32(l)
		}
		return v
	})
)

func ordersOf(lanes, quarter int, vector func([]int) [16]uint32) (orders [17][16]uint32) {
	for rows := 1; rows <= lanes; rows++ {
		order := make([]int, lanes)
		for i := range rows {
			q := i / quarter * quarter
			order[i] = q + i - quarterFrom(q, quarter, rows)
		}
		orders[rows] = vector(order)
	}
	return orders
}

// quarterFrom is the first of the rows that the quarter of a vector is loaded from whose first lane is q: rows that exist.
func quarterFrom(q, quarter, rows int) int { return min(q, max(rows-quarter, 0)) }

// quarters are the distances of the rows of a quarter from its first, and that of the quarter, but for the first.
func quarters(rows, quarter, ss int) (from [7]int) {
	for i := 1; i < 4; i++ {
		from[i] = min(i, rows-1) * ss
		from[i+3] = quarterFrom(i*quarter, quarter, rows) * ss
	}
	return from
}

// copies512 makes dst[p][i] of src[p][i], for k rows and n columns of at most two vectors.
func copies512(kind packing, n, k int, src unsafe.Pointer, ss int, dst unsafe.Pointer, ds int) {
	lanes := 16
	if kind == packF64 {
		lanes = 8
	}
	mask := uint32(1)<<min(n, lanes) - 1
	wide := n > lanes
	if wide {
		mask |= (1<<(n-lanes) - 1) << 16
	}
	switch {
	case kind == packF32 && wide:
		copyF32z2(k, (*float32)(src), ss, (*float32)(dst), ds, mask)
	case kind == packF32:
		copyF32z1(k, (*float32)(src), ss, (*float32)(dst), ds, mask)
	case kind == packF64 && wide:
		copyF64z2(k, (*float64)(src), ss, (*float64)(dst), ds, mask)
	case kind == packF64:
		copyF64z1(k, (*float64)(src), ss, (*float64)(dst), ds, mask)
	case kind == packB16 && wide:
		copyB16z2(k, (*uint16)(src), ss, (*float32)(dst), ds, mask)
	case kind == packB16:
		copyB16z1(k, (*uint16)(src), ss, (*float32)(dst), ds, mask)
	case kind == packF16 && wide:
		copyF16z2(k, (*uint16)(src), ss, (*float32)(dst), ds, mask)
	case kind == packF16:
		copyF16z1(k, (*uint16)(src), ss, (*float32)(dst), ds, mask)
	case wide:
		copyPairsz2(k, (*uint16)(src), ss, (*float32)(dst), ds, mask)
	default:
		copyPairsz1(k, (*uint16)(src), ss, (*float32)(dst), ds, mask)
	}
}

// blocks512 makes columns of up to a vector of rows, of blocks of 16 bytes of each.
func blocks512(kind packing, blocks, rows int, src unsafe.Pointer, ss int, dst unsafe.Pointer, ds int) {
	order, quarter := &orders32[rows][0], 4
	if kind == packF64 {
		order, quarter = &orders64[rows][0], 2
	}
	from := quarters(rows, quarter, ss)
	mask := uint32(1)<<rows - 1
	switch kind {
	case packF32, packPairs:
		columnsF32z(blocks, (*float32)(src), &from, (*float32)(dst), ds, order, mask)
	case packF64:
		columnsF64z(blocks, (*float64)(src), &from, (*float64)(dst), ds, order, mask)
	case packB16:
		columnsB16z(blocks, (*uint16)(src), &from, (*float32)(dst), ds, order, mask)
	case packF16:
		columnsF16z(blocks, (*uint16)(src), &from, (*float32)(dst), ds, order, mask)
	}
}

// dots512 makes c = a·bᵀ + d for up to gemvRows rows of a.
func dots512(m, n, k int, a []float32, ars, acs int, b []float32, bs int, c []float32, ldc int, d []float32, ldd int) {
	for j := 0; j < n; j += 16 {
		rows := min(16, n-j)
		from, order, mask := quarters(rows, 4, bs*4), &orders32[rows][0], uint32(1)<<rows-1
		var add *float32
		if d != nil {
			add = &d[j]
		}
		switch m {
		case 1:
			dotsF32z1(k, &a[0], ars*4, acs*4, &b[j*bs], &from, &c[j], ldc*4, add, ldd*4, order, mask)
		case 2:
			dotsF32z2(k, &a[0], ars*4, acs*4, &b[j*bs], &from, &c[j], ldc*4, add, ldd*4, order, mask)
		case 3:
			dotsF32z3(k, &a[0], ars*4, acs*4, &b[j*bs], &from, &c[j], ldc*4, add, ldd*4, order, mask)
		case 4:
			dotsF32z4(k, &a[0], ars*4, acs*4, &b[j*bs], &from, &c[j], ldc*4, add, ldd*4, order, mask)
		}
	}
}
