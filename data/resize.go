package data

import (
	"image"
	"image/draw"
	"math"
)

// square scales the largest square in the middle of img to size and writes it as three
// planes. Each new pixel is a weighted mean of the old ones around it, with weights that
// fall off linearly: interpolation when it grows, a smooth average when it shrinks.
func square(planes []uint8, img image.Image, size int) {
	b := img.Bounds()
	side := min(b.Dx(), b.Dy())
	corner := b.Min.Add(image.Pt((b.Dx()-side)/2, (b.Dy()-side)/2))
	src := image.NewRGBA(image.Rect(0, 0, side, side))
	draw.Draw(src, src.Rect, img, corner, draw.Src)

	taps := tapsOf(side, size)
	rows := make([]float32, side*size*3) // scaled along x only
	for y := range side {
		line := src.Pix[y*src.Stride:]
		for x, t := range taps {
			for c := range 3 {
				var sum float32
				for k, w := range t.weights {
					sum += w * float32(line[(t.from+k)*4+c])
				}
				rows[(y*size+x)*3+c] = sum
			}
		}
	}
	for y, t := range taps {
		for x := range size {
			for c := range 3 {
				var sum float32
				for k, w := range t.weights {
					sum += w * rows[((t.from+k)*size+x)*3+c]
				}
				planes[(c*size+y)*size+x] = uint8(min(max(sum+0.5, 0), 255))
			}
		}
	}
}

// taps are the old pixels that make a new one, from one on.
type taps struct {
	from    int
	weights []float32
}

func tapsOf(from, to int) []taps {
	scale := float64(from) / float64(to)
	reach := max(scale, 1)
	all := make([]taps, to)
	for i := range all {
		centre := (float64(i) + 0.5) * scale
		lo := max(0, int(math.Ceil(centre-reach-0.5)))
		hi := min(from, int(math.Floor(centre+reach-0.5))+1)
		t := taps{from: lo, weights: make([]float32, hi-lo)}
		var sum float64
		for k := range t.weights {
			w := max(0, 1-math.Abs(float64(lo+k)+0.5-centre)/reach)
			t.weights[k], sum = float32(w), sum+w
		}
		for k := range t.weights {
			t.weights[k] /= float32(sum)
		}
		all[i] = t
	}
	return all
}
