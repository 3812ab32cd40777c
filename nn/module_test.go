package nn_test

import (
	ctx "context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
)

type block struct {
	Conv1, Conv2 *nn.Linear
	BN1          *nn.BatchNorm
}

type tied struct {
	Layer1 []*block
	WTE    *snug.Param
	Head   struct{ Weight *snug.Param }
}

func newTied() *tied {
	m := &tied{Layer1: []*block{{nn.NewLinear(2, 3, true), nn.NewLinear(3, 2, true), nn.NewBatchNorm(2)}}, WTE: snug.NewParam(snug.Uniform(1), 4, 2)}
	m.Head.Weight = m.WTE
	return m
}

func names(m any) (names []string) {
	for n := range nn.Params(m) {
		names = append(names, n)
	}
	return names
}

func TestNames(t *testing.T) {
	want := []string{"layer1.0.conv1.weight", "layer1.0.conv1.bias", "layer1.0.conv2.weight", "layer1.0.conv2.bias",
		"layer1.0.bn1.weight", "layer1.0.bn1.bias", "layer1.0.bn1.running_mean", "layer1.0.bn1.running_var", "layer1.0.bn1.num_batches_tracked", "wte"}
	if got := names(newTied()); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	type embedded struct{ *block }
	type pointers struct {
		embedded
		List [2]nn.Layer
		Any  any
		None *nn.Linear
		F    nn.Func
	}
	l := nn.NewLinear(1, 1, false)
	m := &pointers{embedded{&block{Conv1: l}}, [2]nn.Layer{nil, l}, nn.NewLinear(1, 1, false), nil, (*snug.Tensor).ReLU}
	if got, want := names(m), []string{"conv1.weight", "any.weight"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for range nn.Params(m) { // it stops when told to
		break
	}
	for field, want := range map[string]string{"RunningMean": "running_mean", "BN1": "bn1", "FC": "fc", "InProjWeight": "in_proj_weight", "Layer1": "layer1"} {
		if got := nn.Name(field); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
}

func TestInitIsAllOrNothing(t *testing.T) {
	d := open(t)
	for n := 0; ; n++ {
		m := newTied()
		d.Memory().FailAt(n)
		err := nn.Init(t.Context(), d, m, snug.NewRand(1))
		d.Memory().FailAt(-1)
		if err == nil {
			if n != 10 { // the tied one once
				t.Errorf("%d allocations", n)
			}
			a := get(t, m.WTE)
			nn.Close(m)
			nn.Init(t.Context(), d, m, snug.NewRand(1))
			if b := get(t, m.WTE); !slices.Equal(a, b) || a[0] == 0 {
				t.Error(a, b)
			}
			if err := errors.Join(nn.Close(m), nn.Close(m)); err != nil {
				t.Error(err)
			}
			break
		}
		if !errors.Is(err, memory.ErrOutOfMemory) || d.Memory().Stats().Allocated != 0 {
			t.Fatal(n, err)
		}
	}
	if d.Memory().Stats().Allocated != 0 {
		t.Error("leak")
	}
}

type parent struct {
	W     *snug.Param
	Child *child
}

type child struct {
	Bias *snug.Param
	up   *parent // has no parameter that Params does not find
}

func TestInitRefuses(t *testing.T) {
	d := open(t)
	l := func() *nn.Linear { return nn.NewLinear(1, 1, false) }
	p := func() *snug.Param { return snug.NewParam(nil, 1) }
	type value struct{ P snug.Param }
	for want, m := range map[string]any{
		"fc holds parameters and is not exported":   &struct{ fc *nn.Linear }{l()},
		"act holds parameters and is not exported":  &struct{ act nn.Layer }{l()},
		"list holds parameters and is not exported": &struct{ list []any }{[]any{1, l()}},
		"m holds parameters and is not exported":    &struct{ m map[string]*child }{map[string]*child{"a": {Bias: p()}}},
		"sub.inner holds parameters and is not exported": &struct {
			Sub struct{ inner [1]*snug.Param }
		}{struct{ inner [1]*snug.Param }{[1]*snug.Param{p()}}},
		"experts holds parameters and is a map":                  &struct{ Experts map[string]nn.Layer }{map[string]nn.Layer{"a": l()}},
		"p holds parameters and is not a pointer":                &value{},
		`two parameters are named "bn1"`:                         &struct{ BN1, Bn1 *snug.Param }{p(), p()},
		"*struct { N int } has no parameters in exported fields": &struct{ N int }{},
		"<nil> has no parameters":                                nil,
	} {
		err := nn.Init(t.Context(), d, m, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if n := d.Memory().Stats().Allocated; n != 0 {
		t.Error(n, "bytes are left")
	}

	m := &parent{p(), &child{Bias: p()}}
	m.Child.up = m
	teacher := &struct{ t *parent }{&parent{W: p()}}
	if err := nn.Init(t.Context(), d, m, nil); err != nil {
		t.Error(err)
	}
	if err := nn.Init(t.Context(), d, teacher.t, nil); err != nil {
		t.Error(err)
	}
	both := &struct { // placed on its own, and what reaches it otherwise
		M    *parent
		aux  *parent
		mine *parent
		dev  *snug.Device
	}{m, teacher.t, m, d}
	if err := nn.Init(t.Context(), d, both, nil); err != nil {
		t.Error(err)
	}
}

// What a func captures is found by its first use.
func TestParameterInFunc(t *testing.T) {
	d, hidden := open(t), nn.NewLinear(2, 2, false)
	m := &struct {
		A *nn.Linear
		F nn.Func
	}{nn.NewLinear(2, 2, false), hidden.Forward}
	if err := nn.Init(t.Context(), d, m, nil); err != nil {
		t.Fatal(err)
	}
	err := d.Infer(t.Context(), func(s *snug.Scope) error { m.F(m.A.Forward(snug.Zeros(s, snug.Float32, 1, 2))); return nil })
	if err == nil || !strings.Contains(err.Error(), "not on a device: call nn.Init") {
		t.Error(err)
	}
}

func TestErrorsNameTheLayer(t *testing.T) {
	d, m := open(t), newTied()
	if err := nn.Init(t.Context(), d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	err := d.Train(t.Context(), func(s *snug.Scope) error {
		m.Layer1[0].Conv2.Forward(snug.Zeros(s, snug.Float32, 5, 9))
		return nil
	})
	if !errors.Is(err, snug.ErrShape) || !strings.HasPrefix(err.Error(), "train: layer1.0.conv2: linear: ") || !strings.Contains(err.Error(), "at module_test.go:") {
		t.Error(err)
	}
}

func TestTiedParameterHasOneGradient(t *testing.T) {
	d, m := open(t), newTied()
	if err := nn.Init(t.Context(), d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	finals := 0
	if err := d.Train(t.Context(), func(s *snug.Scope) error {
		x := snug.Zeros(s, snug.Float32, 3, 4)
		y := x.MatMul(m.WTE).Add(x.MatMul(m.Head.Weight))
		return nn.MSE(y, snug.Zeros(s, snug.Float32, 3, 2)).Backward(snug.OnGrad(func(p *snug.Param) error { finals++; return nil }))
	}); err != nil || finals != 1 {
		t.Error(err, finals)
	}
}

func TestFreeze(t *testing.T) {
	d, m := open(t), newTied()
	if err := nn.Init(t.Context(), d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	b := m.Layer1[0]
	step := func() {
		t.Helper()
		if err := d.Train(t.Context(), func(s *snug.Scope) error {
			x := snug.Upload(s, []float32{1, 2, 3, 5}, 2, 2)
			return nn.MSE(b.BN1.Forward(b.Conv2.Forward(b.Conv1.Forward(x))), x).Backward()
		}); err != nil {
			t.Fatal(err)
		}
	}
	nn.Freeze(b.BN1)
	nn.Freeze(b.Conv1)
	step()
	if b.BN1.Weight.HasGrad() || b.Conv1.Weight.HasGrad() || !b.Conv2.Weight.HasGrad() || get(t, b.BN1.NumBatchesTracked)[0] != 0 || get(t, b.BN1.RunningMean)[0] != 0 {
		t.Error("frozen, and moved")
	}
	nn.Unfreeze(b)
	step()
	if !b.BN1.Weight.HasGrad() || !b.Conv1.Weight.HasGrad() || get(t, b.BN1.NumBatchesTracked)[0] != 1 {
		t.Error("not frozen, and stayed")
	}
}

func TestSetDType(t *testing.T) {
	d, m := open(t), newTied()
	if err := nn.SetDType(m, snug.Float64); err != nil {
		t.Fatal(err)
	}
	bn := m.Layer1[0].BN1
	if m.WTE.DType() != snug.Float64 || bn.RunningVar.DType() != snug.Float64 || bn.NumBatchesTracked.DType() != snug.Int64 {
		t.Error(m.WTE.DType(), bn.RunningVar.DType(), bn.NumBatchesTracked.DType())
	}
	if err := nn.SetDType(m, snug.Int32); !errors.Is(err, snug.ErrDType) {
		t.Error(err)
	}
	if err := nn.Init(t.Context(), d, m.Head.Weight, nil); err != nil {
		t.Fatal(err)
	}
	if err := nn.SetDType(m, snug.Float32); !errors.Is(err, snug.ErrInUse) || bn.Weight.DType() != snug.Float64 {
		t.Error(err, bn.Weight.DType())
	}
}

func TestMean(t *testing.T) {
	d, m := open(t), nn.NewMean()
	if err := nn.Init(t.Context(), d, m, nil); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	add := func(result error, o ...snug.Option) error {
		return d.Train(t.Context(), func(s *snug.Scope) error {
			x := snug.Upload(s, []float32{1, 2, 3}, 3).Track()
			m.Add(x.Sum(), 2) // 6
			y := snug.Block(func(x *snug.Tensor) *snug.Tensor {
				y := x.Mul(x).Sum() // 14
				m.Add(y, 4)
				m.Add(y.Cast(snug.BFloat16).Reshape(1, 1), 2)
				return y.Exp()
			}, x)
			m.Add(snug.Upload(s, []float64{math.NaN()}), 0)
			if err := y.Backward(); err != nil {
				return err
			}
			if _, err := m.Take(); !errors.Is(err, snug.ErrInUse) {
				t.Error("taken in a scope that adds:", err)
			}
			return result
		}, o...)
	}
	for _, o := range [][]snug.Option{{}, {checkpoint.Every(1)}} {
		if err := add(nil, o...); err != nil {
			t.Fatal(err)
		}
		if err := add(boom, o...); !errors.Is(err, boom) {
			t.Error(err)
		}
		if err := add(nil, o...); err != nil {
			t.Fatal(err)
		}
		if v, err := m.Take(); err != nil || v != (2*6+6*14)/8. {
			t.Error(v, err)
		}
		if v, err := m.Take(); err != nil || !math.IsNaN(v) {
			t.Error("of nothing:", v, err)
		}
	}
	if err := d.Infer(t.Context(), func(s *snug.Scope) error { m.Add(snug.Zeros(s, snug.Float32, 2), 1); return nil }); !errors.Is(err, snug.ErrShape) {
		t.Error(err)
	}
	before := d.Memory().Stats().Allocated
	nn.Close(m)
	if now := d.Memory().Stats().Allocated; before-now != 512 || now != 0 {
		t.Error(before, now)
	}
	if v, err := m.Take(); err == nil || !math.IsNaN(v) {
		t.Error("closed:", v, err)
	}
}

func TestLerp(t *testing.T) {
	d, e := open(t), open(t)
	a, b := newTied(), newTied()
	if err := nn.SetDType(b, snug.Float64); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(nn.Init(t.Context(), d, a, snug.NewRand(1)), nn.Init(t.Context(), e, b, snug.NewRand(2))); err != nil {
		t.Fatal(err)
	}
	if err := snug.SetParam(a.Layer1[0].BN1.NumBatchesTracked, []int64{7}); err != nil {
		t.Fatal(err)
	}
	x, y := get(t, a.WTE), get(t, b.WTE)
	if err := nn.Lerp(b, a, 0.25); err != nil {
		t.Fatal(err)
	}
	for i, got := range get(t, b.WTE) {
		if want := y[i] + 0.25*(x[i]-y[i]); !(math.Abs(got-want) <= 1e-15) {
			t.Error(i, got, want)
		}
	}
	if got := get(t, b.Layer1[0].BN1.NumBatchesTracked)[0]; got != 7 {
		t.Error("count", got)
	}
	if err := snug.SetParam(b.WTE, slices.Repeat([]float64{math.NaN()}, 8)); err != nil {
		t.Fatal(err)
	}
	if err := nn.Lerp(b, a, 1); err != nil {
		t.Fatal(err)
	}
	if got := get(t, b.WTE); !slices.Equal(got, x) {
		t.Error("copied", got, x)
	}
	if s := e.Memory().Stats(); s.Allocated != 9*512+512 {
		t.Error(s.Allocated)
	}

	other := &struct{ WTE, X *snug.Param }{snug.NewParam(nil, 4, 2), snug.NewParam(nil, 1)}
	if err := nn.Init(t.Context(), d, other, nil); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"no layer1.0.conv1.weight in": nn.Lerp(a, other, 1),
		"has 1 parameters":            nn.Lerp(&struct{ WTE *snug.Param }{other.WTE}, other, 1),
		"wte is [4 2], got [2]":       nn.Lerp(&struct{ WTE *snug.Param }{other.WTE}, &struct{ WTE *snug.Param }{a.Layer1[0].BN1.Weight}, 1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := d.Infer(t.Context(), func(s *snug.Scope) error { a.WTE.In(s); return nn.Lerp(a, b, 1) }); !errors.Is(err, snug.ErrInUse) {
		t.Error(err)
	}
}

func get(t testing.TB, p *snug.Param) []float64 {
	t.Helper()
	v, err := snug.GetParam[float64](p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ExampleLerp() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	layer := func(v float64) *nn.Linear {
		return &nn.Linear{Weight: snug.NewParam(snug.Const(v), 1, 2)}
	}
	model, average := layer(1), layer(0)
	for _, m := range []any{model, average} {
		if err := nn.Init(ctx.Background(), d, m, snug.NewRand(1)); err != nil {
			fmt.Println(err)
			return
		}
	}
	for range 2 { // after each step
		if err := nn.Lerp(average, model, 0.25); err != nil {
			fmt.Println(err)
		}
	}
	v, err := snug.GetParam[float32](average.Weight)
	fmt.Println(v, err)
	// Output: [0.4375 0.4375] <nil>
}

func ExampleMean() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	m := nn.NewMean()
	if err := nn.Init(ctx.Background(), d, m, nil); err != nil {
		fmt.Println(err)
		return
	}
	err = d.Infer(ctx.Background(), func(s *snug.Scope) error {
		m.Add(snug.Full(s, 2, snug.Float32), 1) // a loss over one sample
		m.Add(snug.Full(s, 3, snug.Float32), 3) // and one over three
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Take())
	// Output: 2.75 <nil>
}
