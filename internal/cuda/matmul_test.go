//go:build cuda

package cuda

import (
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Sizes that a thread does alone, that fill a tile or not, of large tiles, and whose depth
// is shared out.
func TestProducts(t *testing.T) {
	g := newAgreement(t)
	g.queue = struct{ Queue }{g.queue.(Queue)} // without cuBLAS
	for _, dtype := range floats {
		tol := 20 * tolerance(dtype)
		for _, c := range [][3]int{{1, 1, 1}, {5, 7, 3}, {3, 5, 0}, {65, 33, 70}, {130, 200, 40}, {8, 9, 1500}, {1, 300, 530}, {1030, 1050, 5}} {
			m, n, k := c[0], c[1], c[2]
			if dtype != driver.Float32 && m > 1000 {
				continue
			}
			x, y, out := g.array(dtype, []int{m, k}, nil), g.array(dtype, []int{k, n}, nil), g.array(dtype, []int{m, n}, nil)
			xt, yt, bias := g.transposed(dtype, []int{m, k}, nil), g.transposed(dtype, []int{k, n}, nil), g.shifted(dtype, n, nil)
			view := g.window(dtype, m, n)
			for _, in := range [][]driver.Array{{x, y}, {xt, yt}, {x, yt, bias}} {
				g.run("matmul", tol, driver.Args{In: in, Out: []driver.Array{out}})
				g.run("matmul add", tol, driver.Args{In: in[:2], Out: []driver.Array{view}})
			}
		}
		for _, c := range [][2][]int{{{2, 3, 9, 20}, {3, 20, 11}}, {{2, 1, 9, 20}, {3, 20, 11}}, {{2, 3, 9, 20}, {20, 11}}, {{9, 20}, {4, 20, 11}}} {
			shape := slices.Clone(c[1])
			if len(c[0]) > len(c[1]) {
				shape = append([]int{c[0][0]}, 3)
				shape = append(shape, 0, 0)
			}
			shape[len(shape)-2], shape[len(shape)-1] = 9, 11
			for _, x := range []driver.Array{g.array(dtype, c[0], nil), g.transposed(dtype, c[0], nil)} {
				g.run("matmul", tol, driver.Args{In: []driver.Array{x, g.array(dtype, c[1], nil)}, Out: []driver.Array{g.array(dtype, shape, nil)}})
			}
		}
	}
}

// An element's bits depend on its row, its column and the depth alone.
func TestBitsOfProducts(t *testing.T) {
	g := newAgreement(t)
	g.queue = struct{ Queue }{g.queue.(Queue)}
	for _, k := range []int{40, 1300} {
		x, y := g.array(driver.Float32, []int{1030, k}, nil), g.array(driver.Float32, []int{k, 1050}, nil)
		row := func(rows, cols int) []float64 {
			a, b, out := x, y, g.array(driver.Float32, []int{rows, cols}, nil)
			a.Shape, b.Shape = []int{rows, k}, []int{k, cols}
			return floatsOf(g.on("cuda", "matmul", driver.Args{In: []driver.Array{a, b}, Out: []driver.Array{out}})[0])[:3]
		}
		want := row(1, 3)
		for _, c := range [][2]int{{2, 5}, {65, 70}, {1030, 1050}} {
			if got := row(c[0], c[1]); !slices.Equal(got, want) {
				t.Errorf("depth %d: the first elements of %v are %v, by themselves %v", k, c, got, want)
			}
		}
	}
}
