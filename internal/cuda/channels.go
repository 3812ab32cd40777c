package cuda

import "github.com/snug-ml/snug/internal/driver"

// channels cuts an array [n c rest…]: how many of each, where the rest counts elements.
func channels(shape []int) (n, c, inner int) {
	return shape[0], shape[1], driver.Numel(shape[2:])
}

// access is how kernels of channels.cuh end that read and write these arrays: by the type
// that all of them have and no gaps, or else by what the first one is computed in. Arrays
// that there are none of are nil.
func access(first *driver.Array, others ...*driver.Array) string {
	for _, a := range append(others, first) {
		switch {
		case a == nil:
		case a.Type != first.Type || !a.Contiguous():
			return anySuffix(first.Type)
		}
	}
	return suffixes[first.Type]
}

// accessFew is the same for planes of inner elements, of which threads take few neighbours at
// a time; the shape alone says how many, and with it the order of sums.
func accessFew(inner int, first *driver.Array, others ...*driver.Array) (suffix string, few int) {
	if inner%4 != 0 || inner == 4 {
		return access(first, others...), 1
	}
	arrays := []*driver.Array{first}
	for _, a := range others {
		if a != nil {
			arrays = append(arrays, a)
		}
	}
	if !dense(arrays...) {
		return anySuffix(first.Type) + "x4", 4
	}
	return access(first, others...) + "x4", 4
}

func anySuffix(t driver.DType) string { return "_any" + accSuffix(t)[2:] }

// accSuffix ends kernels that exist for the types that elements are computed in.
func accSuffix(t driver.DType) string {
	if t == driver.Float64 {
		return "_f64"
	}
	return "_f32"
}

// optional is an array, or nil where there are fewer.
func optional(a []driver.Array, i int) *driver.Array {
	if i < len(a) {
		return &a[i]
	}
	return nil
}

// channelColumns is side in channels.cuh: so many channels one block takes, where they are
// columns.
const channelColumns = 32

// channelGrid is for channelSums: a block for each channel or, where elements of channels
// lie side by side, for 32 of them; and parts of the elements, so that there are many. Each
// thread reads few elements at a time.
func channelGrid(n, c, inner, few int) (grid, block [3]int, parts int) {
	m, wide := n*inner, 1
	if inner == 1 {
		wide = channelColumns
	}
	blocks := ceil(c, wide)
	size := wide
	for size < threads && size < m/few*wide {
		size *= 2
	}
	size = max(size, 32)
	parts = max(1, min(64, 512/max(1, blocks), m/1024*wide))
	return [3]int{blocks, parts, 1}, [3]int{size, 1, 1}, parts
}

// sumBytes is what the sums of channelSums take, in whole lines of the cache.
func sumBytes(n, c, inner int) int64 {
	_, _, parts := channelGrid(n, c, inner, 1)
	return int64(parts*c*16+255) &^ 255
}

// elements is a grid whose threads go through n elements.
func elements(n int) (grid, block [3]int) {
	return [3]int{max(1, min(4096, ceil(n, threads))), 1, 1}, [3]int{threads, 1, 1}
}
