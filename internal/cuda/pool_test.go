//go:build cuda

package cuda

import (
	"math"
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Windows that overlap and that leave gaps, in the padding, beyond the end and adaptive.
func TestPools(t *testing.T) {
	g := newAgreement(t)
	equal := func() float64 { return math.Round(3 * g.rnd.NormFloat64()) } // many are the largest
	for i := range 120 {
		dtype, kernel, stride := floats[i%4], []int{1, 2, 3, 5, 17}[g.rnd.IntN(5)], 1+g.rnd.IntN(4)
		pad, ceil := g.rnd.IntN(kernel/2+1), g.rnd.IntN(2) == 0
		lead := [][]int{{2, 3}, {}, {0}, {4}}[g.rnd.IntN(4)]
		h, w := max(1, kernel-2*pad)+g.rnd.IntN(20), max(1, kernel-2*pad)+g.rnd.IntN(20)
		size := func(in int) int {
			rest := in + 2*pad - kernel
			out := rest/stride + 1
			if ceil && rest%stride > 0 && out*stride < in+pad {
				out++
			}
			return out
		}
		x, y := g.array(dtype, append(slices.Clone(lead), h, w), equal), g.array(dtype, append(slices.Clone(lead), size(h), size(w)), nil)
		place := driver.Uint8
		if kernel > 16 {
			place = driver.Int32
		}
		f := []float64{float64(kernel), float64(stride), float64(pad), float64(g.rnd.IntN(2))}
		max := driver.Args{F: f[:3], In: []driver.Array{x}, Out: []driver.Array{y, g.array(place, y.Shape, nil)}}
		g.run("max pool", 0, max)
		at := g.on("cpu", "max pool", max)[1]
		g.run("max pool backward", 0, driver.Args{F: f[:3], In: []driver.Array{y, at}, Out: []driver.Array{x}})
		if i%3 == 0 {
			f, y = nil, g.array(dtype, append(slices.Clone(lead), 1+g.rnd.IntN(9), 1+g.rnd.IntN(9)), nil)
		}
		g.run("average pool", ofSums(dtype), driver.Args{F: f, In: []driver.Array{x}, Out: []driver.Array{y}})
		g.run("average pool backward", ofSums(dtype), driver.Args{F: f, In: []driver.Array{y}, Out: []driver.Array{x}})
	}
}
