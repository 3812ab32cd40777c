//go:build cuda

package cuda

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Rows for threads and for blocks, targets of each type, and more of them ignored than fit
// in one call.
func TestCrossEntropy(t *testing.T) {
	g := newAgreement(t)
	for _, dtype := range floats {
		loose, sum := tolerance(dtype), 3*tolerance(wide(dtype))
		for i, n := range []int{3, 64, 65, 1000} {
			rows := 9 + 20*(i%2)
			target := g.array([]driver.DType{driver.Int64, driver.Int32, driver.Uint8}[i%3], []int{rows}, func() float64 { return float64(g.rnd.IntN(min(n, 200))) })
			x, lse := g.array(dtype, []int{rows, n}, nil), g.array(wide(dtype), []int{rows}, func() float64 { return 3 + g.rnd.Float64() })
			weight := g.array(driver.Float64, []int{n}, g.rnd.Float64)
			dy := g.array(wide(dtype), nil, nil)
			for j, ignored := range [][]float64{{}, {-100, 2}, {-1, -2, -3, -4, -5, -6, -7, 1, 2}} {
				kept := g.array(driver.Float64, nil, func() float64 { return 7.5 * float64(j) })
				for _, weights := range [][]driver.Array{nil, {weight}} {
					in := func(a ...driver.Array) []driver.Array { return append(a, weights...) }
					outside := g.array(driver.Int64, []int{2}, nil)
					g.run("class count", 1e-12, driver.Args{
						F: append([]float64{float64(n)}, ignored...), In: in(target), Out: []driver.Array{kept, outside},
					})
					for _, f := range [][]float64{{0, 0}, {0.1, 0}, {0.2, 1}} {
						f = append(f, ignored...)
						g.run("cross entropy", sum, driver.Args{F: f, In: in(x, target, kept), Out: []driver.Array{dy, lse}})
						for _, dx := range []driver.Array{x, g.array(dtype, x.Shape, nil)} { // in place, too
							g.run("cross entropy backward", loose, driver.Args{F: f, In: in(x, target, kept, lse, dy), Out: []driver.Array{dx}})
						}
						g.run("nll", sum, driver.Args{F: f, In: []driver.Array{x, target, kept}, Out: []driver.Array{dy}})
						g.run("nll backward", loose, driver.Args{F: f, In: []driver.Array{dy, target, kept}, Out: []driver.Array{g.array(dtype, x.Shape, nil)}})
					}
				}
			}
		}
	}
}

// The first target that is no class is named, whichever thread meets it.
func TestNoClass(t *testing.T) {
	g := newAgreement(t)
	for _, bad := range []int{0, 500, 999} {
		at := -1
		target := g.array(driver.Int64, []int{1000}, func() float64 {
			if at++; at >= bad {
				return float64(10 + at)
			}
			return []float64{-100, 2}[at%2]
		})
		out := g.on("cuda", "class count", driver.Args{
			F: []float64{3, -100}, In: []driver.Array{target}, Out: []driver.Array{g.array(driver.Float64, nil, nil), g.array(driver.Int64, []int{2}, nil)},
		})
		if got := floatsOf(out[1]); got[0] != 1 || got[1] != float64(10+bad) {
			t.Errorf("target %d is the first that is no class: %v", bad, got)
		}
	}
}

func TestCorrect(t *testing.T) {
	g := newAgreement(t)
	few := func() float64 { return float64(g.rnd.IntN(3)) }
	odd := func() float64 { return []float64{1, 2, math.Inf(-1), math.NaN()}[g.rnd.IntN(4)] }
	low := func() float64 { return math.Inf(-1) }
	for _, dtype := range floats {
		for _, n := range []int{1, 5, 100, 1000} {
			for _, value := range []func() float64{few, odd, low} {
				x, target := g.array(dtype, []int{50, n}, value), g.array(driver.Int64, []int{50}, few)
				g.run("correct", 0, driver.Args{In: []driver.Array{x, target}, Out: []driver.Array{g.array(driver.Float64, nil, nil)}})
			}
		}
	}
}
