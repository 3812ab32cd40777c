package kern

// A convKernels is what a level has for convolutions of a type.
type convKernels[T floating] struct {
	vector  int // pixels read at once: up to that many beyond the last one
	rows    int // channels of a tile, at most
	tiles   func(rows int, w, src []T, off []int32, dst []T, ldc int, tiles []tile, add bool)
	dots    func(x, dy []T, off []int32, sums []T, tiles []tile)
	taps    []int // of a tile of the weights' gradient, at most, by vectors of output channels; 0: no such tile
	weights func(vectors, lines, cols int, x []T, pitch int, off []int32, b, c []T)
	planes  *planeKernels                                                              // nil: none
	wino    *winoKernels                                                               // nil: none
	gather  func(n int, src []T, from []int32, lane int, dst []T, rows int)            // weights of some channels side by side; nil: none
	nines   func(n int, src []T, next, taps int, dst []T, rows int)                    // the same of channels that have 9 each time, `next` apart, of which it takes those with a bit in taps; nil: none
	untwist func(n int, src []T, width int, dst []T, distance, channels int, add bool) // of up to 16 channels; nil: none
	pack    func(src []T, off []int32, segments []segment, dst []T, pitch int)         // nil: none
}

// convKernelsOf are those in use.
func convKernelsOf[T floating]() *convKernels[T] {
	for l := level; l > portable; l-- {
		if k, ok := convLevels[l].(*convKernels[T]); ok {
			return k
		}
	}
	return &convKernels[T]{goVector, 6, convTilesGo[T], convDotsGo[T], []int{2: 6}, weightTileGo[T], nil, nil, nil, nil, nil, nil}
}

// panels are those that so many output channels are cut in for the weights' gradient: as many vectors as its kernel takes,
// and not more than needed.
func (k *convKernels[T]) panels(channels int) (vectors, width, panels int) {
	o, most := max(1, channels), (len(k.taps)-1)*k.vector
	panels = (o + most - 1) / most
	vectors = ((o+panels-1)/panels + k.vector - 1) / k.vector
	for k.taps[vectors] == 0 {
		vectors++
	}
	width = vectors * k.vector
	return vectors, width, (channels + width - 1) / width
}

// A tile is two vectors of pixels: where they begin in the source and the result, the second from the first, and how many
// lanes each has.
type tile struct {
	src, src2, dst, dst2 int32
	n, n2                int16
}
