package data

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/snug-ml/snug/internal/driver"
)

// glyphs are the digits as one stroke each: points "xy" in hexadecimal, on a grid 10
// wide and 14 high.
var glyphs = [10]string{
	"50 81 a4 aa 8d 5e 2d 0a 04 21 50",
	"23 50 57 5e",
	"04 11 40 70 92 95 78 0e 5e ae",
	"11 40 81 93 86 47 88 aa 9d 5e 1d",
	"7e 77 70 34 09 59 a9",
	"90 20 16 55 97 aa 8d 4e 0c",
	"80 42 16 0a 2d 5e 8d aa 87 56 27 0a",
	"00 50 a0 77 4e",
	"56 25 13 21 50 81 93 85 56 18 0a 1d 5e 9d aa 98 56",
	"a4 81 50 21 04 27 58 87 a4 99 7e",
}

const shapesSide = 28

type shapes struct {
	n    int
	seed uint64
}

// Shapes is n pictures of digits, [1 28 28] bytes, drawn with strokes of varying place,
// size, slant, thickness and form, and with noise. It needs no file: a sample depends on
// the seed and its number alone, and is the same on every machine. Another seed gives
// other samples, for a test.
func Shapes(n int, seed uint64) Dataset { return shapes{n, seed} }

func (s shapes) Len() int { return s.n }

func (s shapes) Spec() Spec {
	return Spec{Shape: []int{1, shapesSide, shapesSide}, Type: driver.Uint8, Classes: 10, Names: digits}
}

func (s shapes) Read(i int, x Values, y []int64) error {
	if i < 0 || i >= s.n {
		return fmt.Errorf("shapes has samples 0 to %d", s.n-1)
	}
	r := stream(s.seed, forShapes, 0, uint64(i))
	y[0] = int64(r.IntN(10))
	render(x.U8, bend(glyphs[y[0]], r), r)
	return nil
}

// point is in pixels. Products are converted before they are added, here and below: so
// no compiler may fuse the two, and every machine rounds alike. For the same reason
// nothing calls math.Sin.
type point struct{ x, y float64 }

func (p point) sub(q point) point   { return point{p.x - q.x, p.y - q.y} }
func (p point) dot(q point) float64 { return float64(p.x*q.x) + float64(p.y*q.y) }
func (p point) along(f float64, d point) point {
	return point{p.x + float64(f*d.x), p.y + float64(f*d.y)}
}

func between(r *rand.Rand, lo, hi float64) float64 { return lo + float64(r.Float64()*(hi-lo)) }

// bend is a glyph's stroke, distorted and placed at random.
func bend(glyph string, r *rand.Rand) []point {
	h := between(r, -0.14, 0.14) // tan(θ/2), which gives sine and cosine of a turn by θ
	cos, sin := (1-float64(h*h))/(1+float64(h*h)), 2*h/(1+float64(h*h))
	height, width := between(r, 0.95, 1.5), between(r, 0.8, 1.2) // a grid step in pixels; width by height
	slant, bow := between(r, -0.3, 0.3), between(r, -0.03, 0.03)
	centre := point{between(r, 11, 17), between(r, 11, 17)}

	var stroke []point
	for ; len(glyph) > 0; glyph = glyph[min(3, len(glyph)):] {
		p := point{hex(glyph[0]) - 5 + between(r, -0.7, 0.7), hex(glyph[1]) - 7 + between(r, -0.7, 0.7)}
		p.x += float64(slant*p.y) + float64(bow*float64(p.y*p.y))
		p = point{float64(p.x * float64(width*height)), float64(p.y * height)}
		stroke = append(stroke, point{
			centre.x + p.dot(point{cos, -sin}),
			centre.y + p.dot(point{sin, cos}),
		})
	}
	return stroke
}

func hex(c byte) float64 {
	if c >= 'a' {
		return float64(c-'a') + 10
	}
	return float64(c - '0')
}

// render draws a stroke and adds noise.
func render(pixels []uint8, stroke []point, r *rand.Rand) {
	radius, ink, noise := between(r, 0.7, 1.7), between(r, 140, 255), between(r, 0, 70)
	var near [shapesSide * shapesSide]float64 // squared distance to the stroke
	for i := range near {
		near[i] = math.Inf(1)
	}
	for i, a := range stroke[:len(stroke)-1] {
		measure(&near, a, stroke[i+1], radius+1)
	}
	for i := range near {
		cover := min(max(radius+0.5-math.Sqrt(near[i]), 0), 1)
		v := float64(ink*cover) + between(r, -noise, noise)
		pixels[i] = uint8(min(max(v, 0), 255))
	}
}

// measure lowers what is nearer than reach to the line from a to b.
func measure(near *[shapesSide * shapesSide]float64, a, b point, reach float64) {
	line := b.sub(a)
	length := max(line.dot(line), 1e-9)
	clamp := func(v float64) int { return int(min(max(v, 0), shapesSide)) }
	for y := clamp(min(a.y, b.y) - reach); y < clamp(max(a.y, b.y)+reach+1); y++ {
		for x := clamp(min(a.x, b.x) - reach); x < clamp(max(a.x, b.x)+reach+1); x++ {
			p := point{float64(x), float64(y)}
			at := min(max(p.sub(a).dot(line)/length, 0), 1)
			d := p.sub(a.along(at, line))
			i := y*shapesSide + x
			near[i] = min(near[i], d.dot(d))
		}
	}
}
