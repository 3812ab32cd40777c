//go:build cuda

package cuda

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// ofSums is a tolerance for sums of a few hundred numbers, which are rounded once more where
// the type is a 16-bit one.
func ofSums(t driver.DType) float64 {
	if t.Half() {
		return tolerance(t)
	}
	return 30 * tolerance(t)
}

// All three passes, by tiles of 64 and 128 rows and without; several phases of a stride,
// weights that meet no pixel, and padding wider than a window.
func TestConv(t *testing.T) {
	g := newAgreement(t)
	pick := func(from ...int) int { return from[g.rnd.IntN(len(from))] }
	for i := 0; i < 60; {
		groups, o, c := pick(1, 1, 2, 3), pick(1, 7, 8, 40, 65, 130), pick(1, 3, 8, 17, 66)
		if i%6 == 0 {
			groups, o, c = 16, pick(1, 2), pick(1, 3) // depthwise, or nearly
		}
		kh, kw, stride, pad, dilation := pick(1, 2, 3, 5), pick(1, 3, 4), pick(1, 1, 2, 3, 4), pick(0, 1, 2, 5), pick(1, 1, 2, 3)
		n, h, w := pick(0, 1, 2, 3), 1+g.rnd.IntN(15), 1+g.rnd.IntN(15)
		restH, restW := h+2*pad-dilation*(kh-1)-1, w+2*pad-dilation*(kw-1)-1
		if restH < 0 || restW < 0 {
			continue
		}
		dtype := floats[i%len(floats)]
		f := []float64{float64(stride), float64(pad), float64(dilation), float64(groups)}
		x, y := g.array(dtype, []int{n, c * groups, h, w}, nil), g.array(dtype, []int{n, o * groups, restH/stride + 1, restW/stride + 1}, nil)
		weight, bias := g.array(dtype, []int{o * groups, c, kh, kw}, nil), g.array(dtype, []int{o * groups}, nil)
		in := []driver.Array{x, weight}
		if i%2 == 0 {
			in = append(in, bias)
		}
		g.run("conv", ofSums(dtype), driver.Args{F: f, In: in, Out: []driver.Array{y}})
		g.run("conv backward data", ofSums(dtype), driver.Args{F: f, In: []driver.Array{y, weight}, Out: []driver.Array{x}})
		g.run("conv backward weights", ofSums(dtype), driver.Args{F: f, In: []driver.Array{x, y}, Out: []driver.Array{weight}})
		i++
	}
}

// The weights' gradient of many pixels is summed in parts, that of a large group not.
func TestConvParts(t *testing.T) {
	g := newAgreement(t)
	for _, c := range []struct{ o, parts int }{{9, 9}, {128 * 512, 1}} {
		v := convolution{n: 3, c: 5, h: 40, w: 41, o: c.o, kh: 3, kw: 3, oh: 40, ow: 41, groups: 1}
		if _, parts := v.weightTiles(); parts != c.parts {
			t.Errorf("%d channels: %d parts, want %d", c.o, parts, c.parts)
		}
	}
	for _, dtype := range floats {
		x, dy, dw := g.array(dtype, []int{3, 5, 40, 41}, nil), g.array(dtype, []int{3, 9, 40, 41}, nil), g.array(dtype, []int{9, 5, 3, 3}, nil)
		g.run("conv backward weights", 2*ofSums(dtype), driver.Args{F: []float64{1, 1, 1, 1}, In: []driver.Array{x, dy}, Out: []driver.Array{dw}})
	}
}
