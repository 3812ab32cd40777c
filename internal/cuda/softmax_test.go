//go:build cuda

package cuda

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Lanes that a thread works on, and those that a block does.
func TestSoftmax(t *testing.T) {
	g := newAgreement(t)
	low := func() float64 { // masked, now and then
		if g.rnd.IntN(3) == 0 {
			return math.Inf(-1)
		}
		return g.rnd.NormFloat64()
	}
	odd := func() float64 {
		if g.rnd.IntN(400) == 0 {
			return []float64{math.NaN(), math.Inf(1)}[g.rnd.IntN(2)]
		}
		return g.rnd.NormFloat64()
	}
	for _, dtype := range floats {
		for _, c := range [][3]int{{3, 5, 1}, {2, 70, 1}, {9, 1000, 1}, {2, 5, 7}, {2, 100, 3}, {1, 90, 50}, {0, 3, 1}} {
			f, shape := []float64{float64(c[1]), float64(c[2])}, c[:]
			for _, value := range []func() float64{nil, low, odd} {
				for _, name := range []string{"softmax", "log softmax"} {
					x, y := g.array(dtype, shape, value), g.array(dtype, shape, nil)
					g.run(name, tolerance(dtype), driver.Args{F: f, In: []driver.Array{x}, Out: []driver.Array{y}})
				}
			}
			for _, name := range []string{"softmax backward", "log softmax backward"} {
				y, dy, dx := g.array(dtype, shape, nil), g.array(dtype, shape, nil), g.array(dtype, shape, nil)
				g.run(name, 30*tolerance(dtype), driver.Args{F: f, In: []driver.Array{y, dy}, Out: []driver.Array{dx}})
			}
		}
	}
}
