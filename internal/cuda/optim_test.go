//go:build cuda

package cuda

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

func TestOptimizers(t *testing.T) {
	g := newAgreement(t)
	positive := func() float64 { return 0.1 + math.Abs(g.rnd.NormFloat64()) }
	for _, rule := range []struct {
		name   string
		f      []float64
		states int
		small  bool // states may be of bfloat16
	}{
		{"sgd", []float64{0.1, 0.01}, 0, false},
		{"sgd momentum", []float64{0.1, 0.01, 0.9, 1, 0}, 1, true},
		{"sgd momentum", []float64{0.1, 0.01, 0.9, 0.7, 1}, 1, true},
		{"adam", []float64{0.1, 0, 0.9, 0.99, 1e-8, 0.1, 0.01, 0.02}, 2, true},
		{"adam", []float64{0.1, 0.3, 0.9, 0.99, 1e-8, 0.1, 0.01, 0}, 3, true},
		{"rmsprop", []float64{0.1, 0.01, 0.9, 1e-8, 0, 0}, 1, false},
		{"rmsprop", []float64{0.1, 0.01, 0.9, 1e-8, 0.5, 0}, 2, false},
		{"rmsprop", []float64{0.1, 0.01, 0.9, 1e-8, 0, 1}, 2, false},
		{"rmsprop", []float64{0.1, 0.01, 0.9, 1e-8, 0.5, 1}, 3, false},
		{"adagrad", []float64{0.1, 0.01, 1e-10}, 1, false},
		{"adadelta", []float64{1, 0.01, 0.9, 1e-6}, 2, false},
		{"nadam", []float64{0.1, 0.01, 0.9, 0.99, 1e-8, 0.2, 0.01}, 2, false},
		{"adamax", []float64{0.1, 0.01, 0.9, 0.99, 1e-8}, 2, false},
	} {
		for _, dtype := range floats {
			states := []driver.DType{driver.Float32}
			if dtype == driver.Float64 {
				states[0] = driver.Float64
			}
			if rule.small {
				states = append(states, driver.BFloat16)
			}
			for _, state := range states {
				for _, key := range [][3]uint64{{}, {5, 6}} {
					shape := []int{1003}
					a := driver.Args{F: rule.f, Key: key, In: []driver.Array{g.array(dtype, shape, nil)}, Out: []driver.Array{g.array(dtype, shape, nil)}}
					for range rule.states {
						a.Out = append(a.Out, g.array(state, shape, positive))
					}
					if rule.name == "rmsprop" && rule.f[5] != 0 { // the variance must not be negative
						a.Out[len(a.Out)-1] = g.array(state, shape, func() float64 { return 0.01 })
					}
					tol := tolerance(dtype)
					if state == driver.BFloat16 {
						tol = max(tol, tolerance(state))
					}
					g.run(rule.name, tol, a)
				}
			}
		}
	}
}

// More parameters than one launch has room for, of several rates, with those of no elements
// and of no multiple of 16 bytes among them.
func TestManyAtOnce(t *testing.T) {
	g := newAgreement(t)
	positive := func() float64 { return 0.1 + math.Abs(g.rnd.NormFloat64()) }
	lengths := []int{0, 1, 5, 4096, 4097, 20000, 300}
	for _, dtype := range floats {
		var steps, sums []driver.Args
		for i := range 130 {
			shape := []int{lengths[i%len(lengths)]}
			state := driver.BFloat16
			if i%3 == 0 {
				state = map[bool]driver.DType{false: driver.Float32, true: driver.Float64}[dtype == driver.Float64]
			}
			x := g.array(dtype, shape, nil)
			if i%5 == 0 {
				x = g.shifted(dtype, shape[0], nil)
			}
			steps = append(steps, driver.Args{
				F: []float64{0.1 * float64(1+i%2), 0.01, 0.9, 0.99, 1e-8, 0.1, 0.01, 0.02}, Scale: 0.3, Key: [3]uint64{uint64(i), 6}, In: []driver.Array{x},
				Out: []driver.Array{g.array(dtype, shape, nil), g.array(state, shape, positive), g.array(state, shape, positive)},
			})
			sums = append(sums, driver.Args{In: []driver.Array{x}, Out: []driver.Array{g.array(driver.Float64, []int{1}, nil)}})
		}
		g.together("adam", steps...)
		g.together("square sum", sums...)
		g.run("adam", tolerance(dtype), steps[9])
	}
}

func TestAdam8bit(t *testing.T) {
	g := newAgreement(t)
	code := func() float64 { return float64(g.rnd.IntN(256)) }
	scale := func() float64 { return 0.1 + g.rnd.Float64() }
	for _, dtype := range []driver.DType{driver.Float32, driver.BFloat16, driver.Float16} {
		var all []driver.Args
		for i, n := range []int{10*256 + 77, 4096, 40000} {
			blocks := (n + 255) / 256
			all = append(all, driver.Args{F: []float64{0.1, 0, 0.9, 0.99, 1e-8, 0.1, 0.01, 0.02}, Scale: 0.7, Key: [3]uint64{uint64(i), 6},
				In: []driver.Array{g.array(dtype, []int{n}, nil)}, Out: []driver.Array{
					g.array(dtype, []int{n}, nil),
					g.array(driver.Uint8, []int{n}, code), g.array(driver.Float32, []int{blocks}, scale),
					g.array(driver.Uint8, []int{n}, code), g.array(driver.Float32, []int{blocks}, scale)}})
			g.run("adam 8bit", tolerance(dtype), all[i])
		}
		g.together("adam 8bit", all...)
	}
}

func TestAdafactor(t *testing.T) {
	g := newAgreement(t)
	positive := func() float64 { return 0.1 + math.Abs(g.rnd.NormFloat64()) }
	const high, wide = 256, 1024
	parts := func(n, of int) int { return (n + of - 1) / of }
	for _, dtype := range floats {
		state := dtype
		if dtype.Half() {
			state = driver.Float32
		}
		for _, relative := range []float64{0, 1} {
			f := []float64{0.1, 0.99, 0.9, 1e-30, 1e-3, 1, relative, high, wide}
			for _, s := range [][2]int{{2, 3}, {40, 700}, {700, 33}, {3, 20000}} {
				rows, cols := s[0], s[1]
				scratch := parts(cols, wide)*rows + parts(rows, high)*cols + 2*parts(rows, high)*parts(cols, wide)
				a := driver.Args{F: f, In: []driver.Array{g.array(dtype, s[:], nil)}, Out: []driver.Array{g.array(dtype, s[:], nil),
					g.array(state, []int{rows}, positive), g.array(state, []int{cols}, positive), g.array(driver.Float64, []int{scratch}, nil)}}
				g.runFirst("adafactor", 3, 10*tolerance(dtype), a)
			}
			n := 300_001
			a := driver.Args{F: f, In: []driver.Array{g.array(dtype, []int{n}, nil)}, Out: []driver.Array{g.array(dtype, []int{n}, nil),
				g.array(state, []int{n}, positive), g.array(driver.Float64, []int{2 * parts(n, high*wide)}, nil)}}
			g.runFirst("adafactor vector", 2, 10*tolerance(dtype), a)
		}
	}
}

func TestRandom(t *testing.T) {
	g := newAgreement(t)
	key := [3]uint64{1<<40 + 3, 7, 9}
	for _, dtype := range floats {
		for _, n := range []int{1, 5, 1003} {
			x := g.array(dtype, []int{n}, nil)
			g.run("dropout", 0, driver.Args{F: []float64{0.3}, Key: key, In: []driver.Array{x}, Out: []driver.Array{g.array(dtype, []int{n}, nil)}})
			g.run("dropout", 0, driver.Args{F: []float64{0.3}, Key: key, In: []driver.Array{g.shifted(dtype, n, nil)}, Out: []driver.Array{x}})
			for _, name := range []string{"uniform", "normal"} {
				g.run(name, tolerance(dtype), driver.Args{F: []float64{2, 0.5}, Key: key, Out: []driver.Array{x}})
			}
		}
	}
}
