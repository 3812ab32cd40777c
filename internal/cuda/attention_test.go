//go:build cuda

package cuda

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Heads of one group of columns, of two, and of more than a block has; blocks of rows that
// are full, not full, and past the diagonal.
func TestAttention(t *testing.T) {
	g := newAgreement(t)
	for _, dtype := range floats {
		for _, c := range []struct{ batch, heads, queries, keys, width int }{
			{2, 1, 3, 3, 2}, {1, 2, 5, 9, 3}, {1, 1, 2, 2, 0}, {1, 2, 130, 130, 64}, {1, 1, 40, 40, 100}, {1, 1, 20, 33, 150},
		} {
			for _, causal := range []float64{0, 1} {
				if causal == 1 && c.queries != c.keys {
					continue
				}
				// side is [b t h d] seen as [b h t d].
				side := func(rows int) driver.Array {
					a := g.array(dtype, []int{c.batch, rows, c.heads, c.width}, nil)
					a.Shape = []int{c.batch, c.heads, rows, c.width}
					a.Strides[1], a.Strides[2] = a.Strides[2], a.Strides[1]
					return a
				}
				q, k, v, dy := side(c.queries), side(c.keys), side(c.keys), side(c.queries)
				sums := g.array(wide(dtype), []int{c.batch, c.heads, c.queries}, nil)
				forward := driver.Args{F: []float64{causal}, In: []driver.Array{q, k, v}, Out: []driver.Array{side(c.queries), sums}}
				g.run("attention", 2*tolerance(dtype), forward)
				out := g.on("cpu", "attention", forward)
				g.run("attention backward", 4*tolerance(dtype), driver.Args{
					F: []float64{causal}, In: []driver.Array{q, k, v, out[0], out[1], dy}, Out: []driver.Array{side(c.queries), side(c.keys), side(c.keys)},
				})
			}
		}
	}
}
