package data

import "image"

// tap is where a pixel of the result comes from along one side: weights for the source's
// pixels from first on, which sum to one.
type tap struct {
	first   int
	weights []int32 // in units of 1/one
}

const one = 1 << 14

// taps are those of a triangle filter: linear interpolation where the image grows, and
// as wide as the distance of two results where it shrinks, so that nothing is skipped.
// Integers give the same bytes on every machine: all places are in units of 1/(2·to).
func taps(from, to int) []tap {
	t := make([]tap, to)
	reach := 2 * max(from, to) // how far the filter reaches: one source pixel is 2·to
	for i := range t {
		center := (2*i + 1) * from
		first := max(0, (center-reach)/(2*to))
		var w []int64
		var sum int64
		for k := first; k < from; k++ {
			d := (2*k+1)*to - center
			if d >= reach {
				break
			}
			v := int64(max(0, reach-max(d, -d)))
			w, sum = append(w, v), sum+v
		}
		t[i] = tap{first, make([]int32, len(w))}
		var at, given int64 // rounded running sums, so that the weights' sum is exact
		for k, v := range w {
			at += v
			next := at * one / sum
			t[i].weights[k] = int32(next - given)
			given = next
		}
	}
	return t
}

// resize writes an image as three planes of height·width bytes.
func resize(dst []uint8, height, width int, img *image.RGBA) {
	h, w := img.Rect.Dy(), img.Rect.Dx()
	rows := make([]uint8, h*width*3) // resized along x
	for x, t := range taps(w, width) {
		for y := range h {
			src := img.Pix[y*img.Stride+4*t.first:]
			var sum [3]int32
			for k, v := range t.weights {
				for c := range sum {
					sum[c] += v * int32(src[4*k+c])
				}
			}
			for c, s := range sum {
				rows[(y*width+x)*3+c] = uint8((s + one/2) / one)
			}
		}
	}
	for y, t := range taps(h, height) {
		for x := range width {
			var sum [3]int32
			for k, v := range t.weights {
				for c := range sum {
					sum[c] += v * int32(rows[((t.first+k)*width+x)*3+c])
				}
			}
			for c, s := range sum {
				dst[(c*height+y)*width+x] = uint8((s + one/2) / one)
			}
		}
	}
}
