package data

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Augment changes a sample of the given shape in place. All that it draws comes from r,
// which is the same for the same seed, epoch and sample.
type Augment func(x Values, shape []int, r *rand.Rand)

// Crop moves an image by up to pad pixels in each direction and fills with zeros: a
// random crop out of an image padded by that much. A pad below 0 panics.
func Crop(pad int) Augment {
	if pad < 0 {
		panic(fmt.Sprintf("data: crop with a padding of %d", pad))
	}
	return func(x Values, shape []int, r *rand.Rand) {
		dx, dy := r.IntN(2*pad+1)-pad, r.IntN(2*pad+1)-pad
		h, w := plane(shape)
		shift(x.U8, h, w, dx, dy)
		shift(x.F32, h, w, dx, dy)
		shift(x.I64, h, w, dx, dy)
	}
}

// Flip mirrors half of the images from left to right.
func Flip() Augment {
	return func(x Values, shape []int, r *rand.Rand) {
		if r.IntN(2) == 0 {
			return
		}
		_, w := plane(shape)
		mirror(x.U8, w)
		mirror(x.F32, w)
		mirror(x.I64, w)
	}
}

// plane is the height and width of an image; anything flat is one row.
func plane(shape []int) (h, w int) {
	switch n := len(shape); n {
	case 0:
		return 1, 1
	case 1:
		return 1, shape[0]
	default:
		return shape[n-2], shape[n-1]
	}
}

// shift makes pixel (x, y) of each plane what (x+dx, y+dy) was.
func shift[T Element](v []T, h, w, dx, dy int) {
	for ; len(v) > 0; v = v[h*w:] {
		for i := range h {
			y := i
			if dy < 0 { // rows come from above: begin below, so that none is overwritten unread
				y = h - 1 - i
			}
			row := v[y*w : (y+1)*w]
			if y+dy < 0 || y+dy >= h {
				clear(row)
				continue
			}
			src := v[(y+dy)*w : (y+dy+1)*w]
			if dx >= 0 {
				clear(row[copy(row, src[min(dx, w):]):])
			} else {
				copy(row[min(-dx, w):], src)
				clear(row[:min(-dx, w)])
			}
		}
	}
}

func mirror[T Element](v []T, w int) {
	for ; len(v) > 0; v = v[w:] {
		for i, j := 0, w-1; i < j; i, j = i+1, j-1 {
			v[i], v[j] = v[j], v[i]
		}
	}
}

// What a stream of random numbers is for keeps streams of one seed apart.
const (
	forOrder uint64 = iota
	forAugment
	forShapes
)

// stream is the random numbers of one purpose, epoch and sample.
func stream(seed, purpose, epoch, sample uint64) *rand.Rand {
	var key [32]byte
	for i, v := range [4]uint64{seed, purpose, epoch, sample} {
		binary.LittleEndian.PutUint64(key[8*i:], v)
	}
	return rand.New(rand.NewChaCha8(key))
}
