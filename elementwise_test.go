package snug_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestUnary(t *testing.T) {
	positive := optest.Uniform(0.1, 3)
	for _, c := range []struct {
		golden  string // and the name
		f       func(*snug.Tensor) *snug.Tensor
		input   optest.Input
		inPlace func(*snug.Tensor) *snug.Tensor
	}{
		{"gelu", (*snug.Tensor).GELU, optest.Input{}, nil},
		{"gelu_tanh", (*snug.Tensor).GELUTanh, optest.Input{}, nil},
		{"silu", (*snug.Tensor).SiLU, optest.Input{}, nil},
		{"sigmoid", (*snug.Tensor).Sigmoid, optest.Input{}, (*snug.Tensor).SigmoidInPlace},
		{"tanh", (*snug.Tensor).Tanh, optest.Input{}, (*snug.Tensor).TanhInPlace},
		{"exp", (*snug.Tensor).Exp, optest.Input{}, (*snug.Tensor).ExpInPlace},
		{"log", (*snug.Tensor).Log, positive, nil},
		{"sqrt", (*snug.Tensor).Sqrt, positive, (*snug.Tensor).SqrtInPlace},
		{"softplus", (*snug.Tensor).Softplus, optest.Input{}, (*snug.Tensor).SoftplusInPlace},
		{"leaky_relu", func(x *snug.Tensor) *snug.Tensor { return x.LeakyReLU(0.1) }, optest.Away(0),
			func(x *snug.Tensor) *snug.Tensor { return x.LeakyReLUInPlace(0.1) }},
		{"elu", func(x *snug.Tensor) *snug.Tensor { return x.ELU(1) }, optest.Away(0),
			func(x *snug.Tensor) *snug.Tensor { return x.ELUInPlace(1) }},
		{"hardswish", (*snug.Tensor).Hardswish, optest.Away(-3, 3), nil},
		{"abs", (*snug.Tensor).Abs, optest.Away(0), nil},
		{"neg", (*snug.Tensor).Neg, optest.Input{}, nil},
		{"square", (*snug.Tensor).Square, optest.Input{}, nil},
		{"", func(x *snug.Tensor) *snug.Tensor { return x.ELU(0.3) }, optest.Away(0), nil},
		{"", func(x *snug.Tensor) *snug.Tensor { return x.Pow(3) }, optest.Input{}, nil},
		{"", func(x *snug.Tensor) *snug.Tensor { return x.Pow(-0.5) }, positive, nil},
		{"", func(x *snug.Tensor) *snug.Tensor { return x.Pow(0) }, optest.Input{}, nil},
		{"", (*snug.Tensor).ReLU6, optest.Uniform(-4, 12), (*snug.Tensor).ReLU6InPlace},
		{"", func(x *snug.Tensor) *snug.Tensor { return x.Clamp(-0.5, math.Inf(1)) }, optest.Away(-0.5),
			func(x *snug.Tensor) *snug.Tensor { return x.ClampInPlace(-0.5, math.Inf(1)) }},
		{"", func(x *snug.Tensor) *snug.Tensor { return x.AddScalar(2.5) }, optest.Input{},
			func(x *snug.Tensor) *snug.Tensor { return x.AddScalarInPlace(2.5) }},
		{"", func(x *snug.Tensor) *snug.Tensor { return x.MulScalar(-1.5) }, optest.Input{},
			func(x *snug.Tensor) *snug.Tensor { return x.MulScalarInPlace(-1.5) }},
	} {
		op := optest.Op{
			Name:   c.golden,
			F:      one(c.f),
			Shapes: optest.Unary,
			Inputs: []optest.Input{c.input},
			Large:  [][]int{{40, 1000}},
		}
		if c.golden != "" {
			op.Reference = golden(t, "ops", c.golden)
		}
		optest.Run(t, op)
		if c.inPlace != nil {
			op.Name, op.F, op.InPlace = c.golden+" in place", one(c.inPlace), true
			optest.Run(t, op)
		}
	}
}

func TestBinary(t *testing.T) {
	inPlace := [][][]int{{{3, 4}, {3, 4}}, {{2, 3}, {3}}, {{2, 3}, {}}, {{0}, {1}}}
	positive := optest.Uniform(0.5, 2)
	for _, op := range []optest.Op{
		{Name: "sub", F: two((*snug.Tensor).Sub), Reference: golden(t, "ops", "sub_broadcast")},
		{Name: "sub in place", F: two((*snug.Tensor).SubInPlace), Shapes: inPlace, InPlace: true},
		{Name: "div", F: two((*snug.Tensor).Div), Inputs: []optest.Input{{}, positive}},
		{Name: "div in place", F: two((*snug.Tensor).DivInPlace), Shapes: inPlace, InPlace: true, Inputs: []optest.Input{{}, positive}},
		{
			Name:      "div by |y|+1",
			F:         func(x ...*snug.Tensor) *snug.Tensor { return x[0].Div(x[1].Abs().AddScalar(1)) },
			Inputs:    []optest.Input{{}, optest.Away(0)},
			Reference: golden(t, "ops", "div_broadcast"),
		},
		{Name: "maximum", F: two((*snug.Tensor).Maximum), Reference: golden(t, "ops", "maximum")},
		{Name: "minimum", F: two((*snug.Tensor).Minimum)},
		{
			Name: "where",
			F: func(x ...*snug.Tensor) *snug.Tensor {
				return snug.Where(x[0].Greater(snug.Zeros(x[0].Scope(), x[0].DType())), x[0], x[1])
			},
			Inputs:    []optest.Input{optest.Away(0), {}},
			Reference: golden(t, "ops", "where"),
		},
		{
			Name:   "masked fill",
			F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].MaskedFill(x[1], -7) },
			Shapes: inPlace,
			Inputs: []optest.Input{{}, flags},
		},
		{
			Name:    "masked fill in place",
			F:       func(x ...*snug.Tensor) *snug.Tensor { return x[0].MaskedFillInPlace(x[1], -7) },
			Shapes:  inPlace,
			Inputs:  []optest.Input{{}, flags},
			InPlace: true,
		},
		{
			Name:     "lerp",
			F:        func(x ...*snug.Tensor) *snug.Tensor { return x[0].Lerp(x[1], 0.1, 1.25) },
			Shapes:   inPlace,
			Constant: true,
		},
	} {
		if op.Shapes == nil {
			op.Shapes, op.Large = optest.Binary, [][]int{{40, 1000}, {1000}}
		}
		optest.Run(t, op)
	}
	optest.Run(t, optest.Op{
		Name:   "where of three",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return snug.Where(x[0], x[1], x[2]) },
		Shapes: [][][]int{{{3, 4}, {3, 4}, {3, 4}}, {{3, 1}, {4}, {}}, {{}, {2}, {2, 1}}, {{1}, {1}, {0}}},
		Large:  [][]int{{1000}, {40, 1000}, {40, 1}},
		Inputs: []optest.Input{flags},
	})
}

var flags = optest.Input{DType: snug.Bool, Draw: optest.Below(2).Draw}

func TestComparisons(t *testing.T) {
	compare := map[string]func(x, y *snug.Tensor) *snug.Tensor{
		"==": func(x, y *snug.Tensor) *snug.Tensor { return x.Equal(y) },
		"!=": func(x, y *snug.Tensor) *snug.Tensor { return x.NotEqual(y) },
		"<":  func(x, y *snug.Tensor) *snug.Tensor { return x.Less(y) },
		"<=": func(x, y *snug.Tensor) *snug.Tensor { return x.LessEqual(y) },
		">":  func(x, y *snug.Tensor) *snug.Tensor { return x.Greater(y) },
		">=": func(x, y *snug.Tensor) *snug.Tensor { return x.GreaterEqual(y) },
		"!<": func(x, y *snug.Tensor) *snug.Tensor { return x.Less(y).Not() },
	}
	nan := math.NaN()
	x, y := []float64{1, 2, 2, nan, 0}, []float64{2, 2, 1, nan, math.Copysign(0, -1)}
	want := map[string][]uint8{
		"==": {0, 1, 0, 0, 1}, "!=": {1, 0, 1, 1, 0}, "<": {1, 0, 0, 0, 0}, "<=": {1, 1, 0, 0, 1},
		">": {0, 0, 1, 0, 0}, ">=": {0, 1, 1, 0, 1}, "!<": {0, 1, 1, 1, 1},
	}
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Infer(context.Background(), func(s *snug.Scope) error {
		for name, f := range compare {
			for _, dtype := range []snug.DType{snug.Float64, snug.Float32, snug.BFloat16, snug.Float16, snug.Int64, snug.Int32, snug.Uint8} {
				x, y := snug.Upload(s, x, 5), snug.Upload(s, y, 5)
				got, err := snug.Download[uint8](f(x.Cast(dtype), y.Cast(dtype)))
				if err != nil {
					return err
				}
				n := 5
				if !dtype.Float() {
					n = 3 // without the NaN
				}
				if !slices.Equal(got[:n], want[name][:n]) {
					t.Errorf("%s of %s: %v, want %v", name, dtype, got, want[name])
				}
			}
		}
		big := snug.Upload(s, []int64{1 << 53, 1<<53 + 1}, 2)
		got, err := snug.Download[uint8](big.Equal(snug.Upload(s, []int64{1<<53 + 1, 1<<53 + 1}, 2)))
		if err != nil || got[0] != 0 || got[1] != 1 {
			t.Error("large integers:", got, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for name, f := range compare {
		optest.Run(t, optest.Op{Name: name, F: func(x ...*snug.Tensor) *snug.Tensor { return f(x[0], x[1]) }, Shapes: optest.Binary})
	}
}

// Values far out neither overflow nor lose what is there.
func TestExtremes(t *testing.T) {
	x := []float32{-200, -30, -1e-4, 0, 1e-4, 30, 200}
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, c := range map[string]struct {
		f    func(*snug.Tensor) *snug.Tensor
		want func(x float64) (y, dy float64)
	}{
		"softplus": {(*snug.Tensor).Softplus, func(x float64) (float64, float64) {
			return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))), 1 / (1 + math.Exp(-x))
		}},
		"sigmoid": {(*snug.Tensor).Sigmoid, func(x float64) (float64, float64) {
			y := 1 / (1 + math.Exp(-x))
			return y, y / (1 + math.Exp(x))
		}},
		"gelu": {(*snug.Tensor).GELU, func(x float64) (float64, float64) {
			return x * math.Erfc(-x/math.Sqrt2) / 2, math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		}},
		"elu": {func(x *snug.Tensor) *snug.Tensor { return x.ELU(1) }, func(x float64) (float64, float64) {
			if x > 0 {
				return x, 1
			}
			return math.Expm1(x), math.Exp(x)
		}},
	} {
		err := d.Train(context.Background(), func(s *snug.Scope) error {
			in := snug.Upload(s, x, len(x)).Track()
			y := c.f(in).Keep()
			if err := y.Sum().Backward(); err != nil {
				return err
			}
			got, err := snug.Download[float64](y)
			if err != nil {
				return err
			}
			grad, err := snug.Download[float64](in.Grad())
			if err != nil {
				return err
			}
			for i, v := range x {
				y, dy := c.want(float64(v))
				if !(math.Abs(got[i]-y) <= 1e-6*math.Abs(y)+1e-40) || !(math.Abs(grad[i]-dy) <= 2e-7) {
					t.Errorf("%s(%v) = %v with gradient %v, want %v and %v", name, v, got[i], grad[i], y, dy)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func ExampleWhere() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, -2, 3, -4}, 4)
		zero := snug.Zeros(s, snug.Float32)
		fmt.Println(snug.Where(x.Less(zero), x.Neg(), x))
		return nil
	})
	// Output:
	// float32[4] on cpu mean 2.5 std 1.291 [1 2 3 4]
}
