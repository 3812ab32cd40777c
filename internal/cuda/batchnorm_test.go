//go:build cuda

package cuda

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Channels of planes and of columns, whole and in parts, none, and no elements.
var normShapes = [][]int{{4, 3, 5, 7}, {1, 1}, {30, 40}, {200, 33}, {2, 5, 1}, {16, 2, 31, 30}, {3, 5, 6, 6}, {40, 3, 32, 4}, {6, 7, 4}, {2, 0, 3}, {0, 3}, {2, 3, 0}, {2000, 3}, {5, 70, 2, 2}}

// statistics is the type of statistics.
func statistics(t driver.DType) driver.DType {
	if t == driver.Float64 {
		return t
	}
	return driver.Float32
}

// like is an array of x's shape that is as x, or of another type, or has its dimensions the
// other way round.
func (g *agreement) like(x driver.Array) driver.Array {
	switch g.rnd.IntN(3) {
	case 0:
		return g.array(floats[g.rnd.IntN(len(floats))], x.Shape, nil)
	case 1:
		return g.transposed(x.Type, x.Shape, nil)
	}
	return g.array(x.Type, x.Shape, nil)
}

func TestBatchNorm(t *testing.T) {
	g := newAgreement(t)
	positive := func() float64 { return .1 + g.rnd.Float64() }
	for i := range 4 * len(normShapes) {
		shape, dtype, small := normShapes[i/4], floats[i%4], floats[g.rnd.IntN(4)]
		c := shape[1]
		x := g.like(g.array(dtype, shape, nil))
		if dtype = x.Type; driver.Numel(shape)/max(1, c) > 0 {
			g.run("mean variance", ofSums(statistics(dtype)), driver.Args{In: []driver.Array{x}, Out: []driver.Array{
				g.array(statistics(dtype), []int{c}, nil), g.array(statistics(dtype), []int{c}, nil)}})
		}
		in := []driver.Array{x, g.array(statistics(dtype), []int{c}, nil), g.array(small, []int{c}, positive), g.array(small, []int{c}, nil), g.array(small, []int{c}, nil)}
		y, dy, add, dadd := g.array(dtype, shape, nil), g.like(x), g.like(x), g.array(dtype, shape, nil)
		dw, db := g.array(small, []int{c}, nil), g.array(small, []int{c}, nil)
		for _, most := range []float64{0, math.Inf(1), 1.5} {
			f := []float64{1e-5, most, float64(i / 2 % 2)}
			g.run("batch norm", 4*tolerance(dtype), driver.Args{F: f[:2], In: in, Out: []driver.Array{y}})
			g.run("batch norm", 4*tolerance(dtype), driver.Args{F: f[:2], In: append(in[:5:5], add), Out: []driver.Array{y}})
			tol := max(4*ofSums(dtype), ofSums(statistics(dtype))*math.Sqrt(float64(1+driver.Numel(shape)))/4)
			g.run("batch norm backward", tol, driver.Args{F: f, In: append(in[:5:5], dy), Out: []driver.Array{y, dw, db}})
			if most != 0 {
				g.run("batch norm backward", tol, driver.Args{F: f, In: append(in[:5:5], dy, add), Out: []driver.Array{y, dw, db, dadd}})
			}
		}
	}
}

// What was added may have its gradient where dy lies.
func TestBatchNormOverDy(t *testing.T) {
	g := newAgreement(t)
	for _, dtype := range floats {
		shape, c := []int{3, 4, 5, 5}, []int{4}
		one := func() float64 { return 1 }
		dy := g.array(dtype, shape, nil)
		in := []driver.Array{g.array(dtype, shape, nil), g.array(statistics(dtype), c, nil), g.array(statistics(dtype), c, one), g.array(dtype, c, nil), g.array(dtype, c, nil), dy, g.array(dtype, shape, nil)}
		out := []driver.Array{g.array(dtype, shape, nil), g.array(dtype, c, nil), g.array(dtype, c, nil), dy}
		g.run("batch norm backward", 4*ofSums(dtype), driver.Args{F: []float64{1e-5, math.Inf(1), 1}, In: in, Out: out})
	}
}

func TestGroupNorm(t *testing.T) {
	g := newAgreement(t)
	for i := range 4 * len(normShapes) {
		shape, dtype, small := normShapes[i/4], floats[i%4], floats[g.rnd.IntN(4)]
		c := shape[1]
		if c == 0 {
			continue
		}
		x := g.like(g.array(dtype, shape, nil))
		dtype = x.Type
		for _, count := range []int{1, c} {
			rows := []int{shape[0] * count}
			if rows[0] > 2000 {
				continue
			}
			weight, bias := g.array(small, []int{c}, nil), g.array(small, []int{c}, nil)
			y, mean, inverse := g.array(dtype, shape, nil), g.array(statistics(dtype), rows, nil), g.array(statistics(dtype), rows, func() float64 { return .5 })
			tol := max(ofSums(dtype), ofSums(statistics(dtype))*math.Sqrt(float64(1+driver.Numel(shape)))/4)
			g.run("group norm backward", tol, driver.Args{F: []float64{float64(count)}, In: []driver.Array{x, weight, mean, inverse, g.like(x)},
				Out: []driver.Array{y, g.array(small, []int{c}, nil), g.array(small, []int{c}, nil)}})
			if driver.Numel(shape[1:])/count == 1 {
				continue // of one element the inverse deviation is rounding alone
			}
			g.run("group norm", tol, driver.Args{F: []float64{float64(count), 1e-5}, In: []driver.Array{x, weight, bias}, Out: []driver.Array{y, mean, inverse}})
		}
	}
}

func TestCount(t *testing.T) {
	g := newAgreement(t)
	n := g.array(driver.Int64, []int{1}, func() float64 { return 41 })
	g.run("count", 0, driver.Args{In: []driver.Array{n}, Out: []driver.Array{g.array(driver.Int64, []int{1}, nil)}})
}
