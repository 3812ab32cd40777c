//go:build cuda

package cuda

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

func TestSums(t *testing.T) {
	g := newAgreement(t)
	for _, dtype := range floats {
		wide := dtype
		if dtype.Half() {
			wide = driver.Float32
		}
		for _, c := range []struct {
			kept, gone []int
		}{
			{nil, []int{50001}}, {[]int{5}, []int{20}}, {[]int{5}, []int{700}}, {[]int{300, 2}, []int{3, 40}}, {[]int{3}, []int{2, 9000}}, {nil, nil}, {[]int{3}, []int{0}}, {[]int{0}, []int{3}},
		} {
			shape := append(append([]int{}, c.kept...), c.gone...)
			for _, x := range []driver.Array{g.array(dtype, shape, nil), g.transposed(dtype, shape, nil)} {
				f := []float64{float64(len(c.gone)), 0.5}
				for _, to := range []driver.DType{dtype, wide} {
					out := g.array(to, c.kept, nil)
					g.run("sum", 10*tolerance(to), driver.Args{F: f, In: []driver.Array{x}, Out: []driver.Array{out}})
				}
				out, mean := g.array(dtype, c.kept, nil), g.array(wide, c.kept, nil)
				g.run("square deviation", 10*tolerance(dtype), driver.Args{F: f, In: []driver.Array{x, mean}, Out: []driver.Array{out}})
			}
			one := g.array(driver.Float64, []int{1}, nil)
			g.run("square sum", 1e-12, driver.Args{In: []driver.Array{g.array(dtype, shape, nil)}, Out: []driver.Array{one}})
		}
	}
}

// The bits of a sum do not depend on how many others are made beside it.
func TestOrderOfSums(t *testing.T) {
	for _, m := range []int{0, 1, 32, 33, 1000, 16385, 3_000_000} {
		for _, beside := range []bool{false, true} {
			one, many := newReduction(1, m, beside), newReduction(1000, m, beside)
			if one.lanes != many.lanes || one.each != many.each {
				t.Errorf("sums of %d: %+v for one, %+v for many", m, one, many)
			}
			if threads%one.lanes != 0 || one.parts()*one.each < m {
				t.Errorf("sums of %d: %+v", m, one)
			}
		}
	}
}

func TestExtremes(t *testing.T) {
	g := newAgreement(t)
	few := func() float64 { return float64(g.rnd.IntN(50)) }
	odd := func() float64 {
		if g.rnd.IntN(300) == 0 {
			return math.NaN()
		}
		return few()
	}
	for _, dtype := range floats {
		for _, s := range [][3]int{{3, 5, 1}, {4, 700, 1}, {2, 30, 7}, {2, 300, 7}, {1, 5000, 1}} {
			outer, n, inner := s[0], s[1], s[2]
			f := []float64{float64(n), float64(inner)}
			shape := []int{outer, inner}
			for _, name := range []string{"max", "min"} {
				for where, value := range map[driver.DType]func() float64{driver.Int32: few, driver.Int64: odd} {
					g.run(name, 0, driver.Args{F: f, In: []driver.Array{g.array(dtype, s[:], value)},
						Out: []driver.Array{g.array(dtype, shape, nil), g.array(where, shape, nil)}})
				}
			}
			index := g.array(driver.Int32, shape, func() float64 { return float64(g.rnd.IntN(n)) })
			g.run("extreme backward", 0, driver.Args{F: f, In: []driver.Array{g.array(dtype, shape, nil), index}, Out: []driver.Array{g.array(dtype, s[:], nil)}})
		}
	}
}
