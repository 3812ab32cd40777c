//go:build cuda

package cuda

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

func TestPairLosses(t *testing.T) {
	g := newAgreement(t)
	positive := func() float64 { return max(0, g.rnd.NormFloat64()) }
	for _, dx := range floats {
		for _, dy := range floats {
			for _, n := range []int{0, 1, 3000} {
				for _, name := range []string{"mse", "l1", "smooth l1", "bce", "kl"} {
					value := g.rnd.NormFloat64
					if name == "kl" {
						value = positive
					}
					x, y := g.array(dx, []int{n}, nil), g.array(dy, []int{n}, value)
					loss, grad := g.array(wide(dx), nil, nil), g.array(wide(dx), nil, nil)
					f := []float64{1 / float64(max(1, n)), 0, 0.7}
					g.run(name, tolerance(wide(dx)), driver.Args{F: f, In: []driver.Array{x, y}, Out: []driver.Array{loss}})
					for i, of := range []driver.DType{dx, dy} {
						f[1] = float64(i)
						g.run(name+" backward", max(tolerance(wide(dx)), tolerance(of)), driver.Args{
							F: f, In: []driver.Array{x, y, grad}, Out: []driver.Array{g.array(of, []int{n}, nil)},
						})
					}
				}
			}
		}
	}
}
