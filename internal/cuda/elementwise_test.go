//go:build cuda

package cuda

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// forms calls fn with inputs of the given types that lie in various ways, and an output.
func (g *agreement) forms(out driver.DType, in []driver.DType, value func() float64, fn func(in []driver.Array, out driver.Array)) {
	each := func(shape []int, out driver.Array, of func(i int, t driver.DType) driver.Array) {
		var a []driver.Array
		for i, t := range in {
			a = append(a, of(i, t))
		}
		fn(a, out)
	}
	for _, shape := range [][]int{{5, 7, 29}, {}, {0, 3}} {
		each(shape, g.array(out, shape, nil), func(_ int, t driver.DType) driver.Array { return g.array(t, shape, value) })
	}
	shape := []int{3, 4, 5}
	each(shape, g.array(out, shape, nil), func(i int, t driver.DType) driver.Array {
		return g.array(t, [][]int{shape, {4, 1}, {5}}[i], value)
	})
	each(shape, g.array(out, shape, nil), func(i int, t driver.DType) driver.Array {
		if i == 1 {
			return g.array(t, shape, value)
		}
		return g.transposed(t, shape, value)
	})
	each([]int{40}, g.array(out, []int{40}, nil), func(_ int, t driver.DType) driver.Array { return g.shifted(t, 40, value) })
	each([]int{4, 6}, g.window(out, 4, 6), func(_ int, t driver.DType) driver.Array { return g.array(t, []int{4, 6}, value) })
}

func repeat(t driver.DType, n int) []driver.DType {
	return []driver.DType{t, t, t}[:n]
}

func TestElementwise(t *testing.T) {
	g := newAgreement(t)
	above := func() float64 { return 0.1 + math.Abs(g.rnd.NormFloat64()) }
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), -3, 3, 0.25}
	wild := func() float64 {
		if g.rnd.IntN(4) == 0 {
			return odd[g.rnd.IntN(len(odd))]
		}
		return 3 * g.rnd.NormFloat64()
	}
	for _, op := range []struct {
		name  string
		in    int
		f     []float64
		value func() float64
	}{
		{"add", 2, nil, wild}, {"sub", 2, nil, wild}, {"mul", 2, nil, wild}, {"div", 2, nil, wild}, {"div backward", 3, nil, above},
		{"scale", 1, []float64{0.3}, wild}, {"shift", 1, []float64{0.3}, wild}, {"lerp", 2, []float64{0.1, 0.7}, nil},
		{"clamp", 1, []float64{-0.5, 0.25}, wild}, {"clamp backward", 2, []float64{-0.5, 0.25}, wild},
		{"hardswish", 1, nil, nil}, {"hardswish backward", 2, nil, nil}, {"abs", 1, nil, wild}, {"abs backward", 2, nil, wild},
		{"exp", 1, nil, nil}, {"exp backward", 2, nil, nil}, {"log", 1, nil, above}, {"log backward", 2, nil, above},
		{"sqrt", 1, nil, above}, {"sqrt backward", 2, nil, above}, {"square", 1, nil, nil}, {"square backward", 2, nil, nil},
		{"pow", 1, []float64{0.3}, above}, {"pow backward", 2, []float64{0.3}, above}, {"pow backward", 2, []float64{0}, nil},
		{"gelu", 1, nil, nil}, {"gelu backward", 2, nil, nil}, {"gelu tanh", 1, nil, nil}, {"gelu tanh backward", 2, nil, nil},
		{"leaky relu", 1, []float64{0.01}, wild}, {"leaky relu backward", 2, []float64{0.01}, wild},
		{"elu", 1, []float64{0.7}, nil}, {"elu backward", 2, []float64{0.7}, nil},
		{"relu", 1, nil, wild}, {"relu backward", 2, nil, wild},
		{"sigmoid", 1, nil, nil}, {"sigmoid backward", 2, nil, nil}, {"tanh", 1, nil, nil}, {"tanh backward", 2, nil, nil},
		{"silu", 1, nil, nil}, {"silu backward", 2, nil, nil}, {"softplus", 1, nil, nil}, {"softplus backward", 2, nil, nil},
		{"var backward", 3, []float64{0.2}, nil},
	} {
		for _, dtype := range floats {
			in := repeat(dtype, op.in)
			if op.name == "var backward" && dtype.Half() {
				in[1] = driver.Float32
			}
			g.forms(dtype, in, op.value, func(in []driver.Array, out driver.Array) {
				g.run(op.name, tolerance(dtype), driver.Args{F: op.f, In: in, Out: []driver.Array{out}})
			})
		}
	}
}

func TestCompareAndChoose(t *testing.T) {
	g := newAgreement(t)
	few := func() float64 { return float64(g.rnd.IntN(3)) }
	for _, dtype := range all {
		try := func(name string, out driver.DType, in []driver.DType, f ...float64) {
			g.forms(out, in, few, func(in []driver.Array, out driver.Array) {
				g.run(name, 0, driver.Args{F: f, In: in, Out: []driver.Array{out}})
			})
		}
		for _, name := range []string{"equal", "not equal", "less", "less or equal"} {
			try(name, driver.Bool, repeat(dtype, 2))
		}
		try("where", dtype, []driver.DType{dtype, dtype, driver.Bool})
		try("masked fill", dtype, []driver.DType{dtype, driver.Bool}, 2, 0)
		try("masked fill", dtype, []driver.DType{dtype, driver.Bool}, 2, 1)
	}
	g.forms(driver.Bool, []driver.DType{driver.Bool}, few, func(in []driver.Array, out driver.Array) {
		g.run("not", 0, driver.Args{In: in, Out: []driver.Array{out}})
	})
}

func TestInPlace(t *testing.T) {
	g := newAgreement(t)
	x, y := g.array(driver.Float32, []int{3, 50}, nil), g.array(driver.Float32, []int{50}, nil)
	g.run("add", 0, driver.Args{In: []driver.Array{x, y}, Out: []driver.Array{x}})
	g.run("relu", 0, driver.Args{In: []driver.Array{x}, Out: []driver.Array{x}})
}

// Any float32 rounds to 16 bits as on the host: ties, numbers below the normal ones, those
// too large, infinities and NaN among them; and every 16 bits widen to the same number.
func TestRoundingTo16Bits(t *testing.T) {
	g := newAgreement(t)
	const n = 1 << 16
	values := driver.Array{Type: driver.Float32, Shape: []int{n}, Strides: []int{1}, Data: make([]byte, 4*n)}
	for i, v := 0, driver.Of[int32](&values); i < n; i++ {
		v[i] = int32(g.rnd.Uint32())
		switch i % 4 {
		case 0: // in float16's range, about the middle between two numbers
			v[i] = int32(uint32(100+g.rnd.IntN(45))<<23 | uint32(g.rnd.IntN(1<<10))<<13 | 1<<12 + uint32(g.rnd.IntN(3)) - 1)
		case 1:
			v[i] = int32(g.rnd.Uint32()&^0xffff | 1<<15 + uint32(g.rnd.IntN(3)) - 1)
		}
	}
	for _, to := range []driver.DType{driver.BFloat16, driver.Float16} {
		out := g.array(to, []int{n}, nil)
		g.run("cast", 0, driver.Args{In: []driver.Array{values}, Out: []driver.Array{out}})
		for i, h := 0, driver.Of[driver.F16](&out); i < n; i++ {
			h[i] = driver.F16(i)
		}
		g.run("cast", 0, driver.Args{In: []driver.Array{out}, Out: []driver.Array{values}})
		// What a step makes exactly is rounded by the same random bits.
		w := g.array(to, []int{n}, nil)
		g.run("sgd", 0, driver.Args{F: []float64{1, 0}, Key: [3]uint64{5, 6}, In: []driver.Array{g.array(to, []int{n}, nil)}, Out: []driver.Array{w}})
	}
}

func TestCopyCastFill(t *testing.T) {
	g := newAgreement(t)
	value := func() float64 { return float64(g.rnd.IntN(400)-200) / 4 }
	for _, from := range all {
		for _, to := range all {
			if v := value; from.Float() && to == driver.Uint8 { // of less than 0 it is not defined
				value = func() float64 { return math.Abs(v()) }
			}
			g.forms(to, []driver.DType{from}, value, func(in []driver.Array, out driver.Array) {
				name := "cast"
				if from == to {
					name = "copy"
				}
				g.run(name, 0, driver.Args{In: in, Out: []driver.Array{out}})
			})
		}
		for _, v := range []float64{0, 1, 0.5, 100.25} {
			for _, out := range []driver.Array{g.array(from, []int{1003}, nil), g.window(from, 3, 5)} {
				g.run("fill", 0, driver.Args{F: []float64{v}, Out: []driver.Array{out}})
			}
		}
	}
}

func TestTransposedCopies(t *testing.T) {
	g := newAgreement(t)
	for _, dtype := range []driver.DType{driver.Float32, driver.Float64, driver.Float16, driver.Uint8} {
		for _, s := range [][2]int{{70, 45}, {16, 300}, {33, 31}} {
			rows, cols := s[0], s[1]
			g.run("copy", 0, driver.Args{In: []driver.Array{g.transposed(dtype, s[:], nil)}, Out: []driver.Array{g.window(dtype, rows, cols)}})
			x := g.array(dtype, []int{3, cols, 2, rows}, nil) // as [3 2 rows cols]
			x.Shape, x.Strides = []int{3, 2, rows, cols}, []int{x.Strides[0], x.Strides[2], 1, x.Strides[1]}
			g.run("copy", 0, driver.Args{In: []driver.Array{x}, Out: []driver.Array{g.array(dtype, x.Shape, nil)}})
		}
	}
}

func TestLerpToAnotherType(t *testing.T) {
	g := newAgreement(t)
	for _, from := range floats {
		for _, to := range floats {
			x, y := g.array(from, []int{301}, nil), g.array(to, []int{301}, nil)
			g.run("lerp", tolerance(from), driver.Args{F: []float64{0.1, 1}, In: []driver.Array{x, y}, Out: []driver.Array{x}})
		}
	}
}
