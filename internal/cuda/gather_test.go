//go:build cuda

package cuda

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Tables of one digit of eight bits, of two and of three, rows of every unit, and lanes of
// few uses and of many. All sums have the host's order, and so its bits.
func TestGathering(t *testing.T) {
	g := newAgreement(t)
	for _, dtype := range floats {
		for i, c := range []struct{ rows, uses, width int }{
			{1, 4, 4}, {10, 5, 7}, {3, 20, 64}, {300, 1000, 9}, {70000, 300, 3}, {5, 0, 3}, {5, 3, 0},
		} {
			below := func() float64 { return float64(g.rnd.IntN(c.rows)) }
			itype := []driver.DType{driver.Int64, driver.Int32}[i%2]
			n, k, f := c.rows, c.uses, []float64{float64(c.rows), float64(c.width)}
			index := g.array(itype, []int{k}, below)
			array := func(shape ...int) driver.Array { return g.array(dtype, append(shape, c.width), nil) }
			run := func(name string, f []float64, x, index, y driver.Array) {
				t.Helper()
				g.run(name, 0, driver.Args{F: f, In: []driver.Array{x, index}, Out: []driver.Array{y}})
			}
			run("embedding", nil, array(n), index, array(k))
			run("embedding backward", []float64{float64(i%3) - 1}, array(k), index, array(n))
			g.run("index outside", 0, driver.Args{F: []float64{float64(n - i%2)}, In: []driver.Array{index}, Out: []driver.Array{g.array(driver.Int64, []int{2}, nil)}})
			if n > 1000 {
				continue
			}
			run("index select", f, array(3, n), index, array(3, k))
			run("index select backward", f, array(3, k), index, array(3, n))
			lanes := g.array(itype, []int{2, k, c.width}, below)
			run("gather", f, array(2, n), lanes, array(2, k))
			run("gather backward", f, array(2, k), lanes, array(2, n))
		}
	}
}
