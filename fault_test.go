package snug_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

// Wrong arguments are errors of the scope: no panic, and no shape that cannot be.
func TestWrongArguments(t *testing.T) {
	d := open(t)
	const huge = math.MaxInt/2 + 1 // four times as much is 0
	for name, f := range map[string]func(s *snug.Scope){
		"matmul: shapes do not fit: x [] and w [2]":   func(s *snug.Scope) { ramp(s).MatMul(ramp(s, 2)) },
		"matmul: shapes do not fit: x [1 2] and w []": func(s *snug.Scope) { ramp(s, 2).MatMul(ramp(s)) },
		"narrow: shapes do not fit":                   func(s *snug.Scope) { ramp(s, 4, 3).Narrow(0, 1, math.MaxInt) },
		"expand: shapes do not fit: [1 3]":            func(s *snug.Scope) { ramp(s, 1, 3).Expand(-1, 3) },
		"full: shapes do not fit: [" + fmt.Sprint(huge) + "] has more elements": func(s *snug.Scope) {
			snug.Zeros(s, snug.Float32, huge)
		},
		"upload: shapes do not fit: ": func(s *snug.Scope) {
			snug.Upload(s, []float32{}, huge, 4)
		},
		"expand: shapes do not fit: ":  func(s *snug.Scope) { ramp(s, 1).Expand(huge, 4) },
		"reshape: shapes do not fit: ": func(s *snug.Scope) { ramp(s, 0).Reshape(huge, 4) },
		"m: types do not fit: a kernel over int": func(s *snug.Scope) {
			snug.Map(s, "m", []int{2}, func([]int, ...[]int) error { return nil })
		},
		"layer": func(s *snug.Scope) { // one that has no path, as it is no pointer
			snug.Layer(nn.Sequential{nn.ReLU}, func(x *snug.Tensor) *snug.Tensor {
				s.Fail("layer", errors.New("on purpose"))
				return x
			}, ramp(s, 2))
		},
	} {
		fails(t, d, func(s *snug.Scope) error { f(s); return nil })(nil, "train: "+name, "at fault_test.go:")
	}
	if err := d.Train(bg, func(*snug.Scope) error { return nil }, snug.Option{}, snug.Option{}); err != nil {
		t.Error("the zero Option:", err)
	}
	b := snug.NewBuffer(nil, 2)
	place(t, d, b)
	fails(t, d, func(s *snug.Scope) error {
		x := ramp(s, 2)
		x.Free()
		b.Assign(x)
		return nil
	})(snug.ErrFreed, "assign", "upload at core_test.go")
}

// A loss may be what wants the gradient: it is 1, and each Backward adds.
func TestBackwardOfALeaf(t *testing.T) {
	d := open(t)
	p := snug.NewParam(snug.Const(3), 1)
	place(t, d, p)
	calls := 0
	if err := d.Train(bg, func(s *snug.Scope) error {
		x := ramp(s, 1).Track()
		for range 2 {
			if err := x.Backward(); err != nil {
				return err
			}
			if err := p.In(s).Backward(snug.Weight(2), snug.OnGrad(func(*snug.Param) error { calls++; return nil })); err != nil {
				return err
			}
		}
		if err := p.In(s).Backward(snug.Into(none)); err != nil {
			return err
		}
		for _, c := range []struct {
			g    *snug.Tensor
			want float64
		}{{x.Grad(), 2}, {p.Grad(s), 4}} {
			if v, err := c.g.Item(); err != nil || v != c.want {
				t.Error(v, err, "want", c.want)
			}
		}
		return nil
	}); err != nil || calls != 2 {
		t.Error(err, calls)
	}
}

// What an operation of a user's returns as gradients is looked at.
func TestWrongGradients(t *testing.T) {
	d := open(t)
	p := snug.NewParam(snug.Const(1), 2, 3)
	place(t, d, p)
	for says, back := range map[string]func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor{
		"a gradient [3] of input 0, which is [2 3]": func(_ *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			return []*snug.Tensor{dy.Sum(0)}
		},
		"a gradient of int64": func(_ *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			return []*snug.Tensor{dy.Cast(snug.Int64)}
		},
		"2 gradients for 1 inputs": func(_ *snug.Call, dy *snug.Tensor) []*snug.Tensor { return []*snug.Tensor{dy, dy} },
		"0 gradients for 1 inputs": func(*snug.Call, *snug.Tensor) []*snug.Tensor { return nil },
	} {
		op := &snug.Op{
			Name:     "user's",
			Forward:  func(_ *snug.Call, in ...*snug.Tensor) *snug.Tensor { return in[0].MulScalar(2) },
			Backward: back,
		}
		fails(t, d, func(s *snug.Scope) error {
			return snug.Apply(op, p.In(s)).Sum().Backward()
		})(nil, "user's backward: ", says, "at fault_test.go:")
		if p.HasGrad() {
			t.Error(says, "left a gradient")
		}
	}
}

// The line of the call is found behind many layers.
func TestPlaceBehindManyLayers(t *testing.T) {
	d := open(t)
	var l nn.Layer = nn.NewLinear(3, 2, true)
	for range 8 {
		l = nn.Sequential{l}
	}
	if err := nn.Init(bg, d, l, nil); err != nil {
		t.Fatal(err)
	}
	defer nn.Close(l)
	fails(t, d, func(s *snug.Scope) error {
		x := ramp(s, 2, 5)
		l.Forward(x)
		return nil
	})(snug.ErrShape, "at fault_test.go:")
}

func openDry(t *testing.T) *snug.Device {
	d, err := snug.Open(testdevice.Dry, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// A gradient is read where it lies.
func TestGradientOfAnotherDevice(t *testing.T) {
	d, dry := open(t), openDry(t)
	p := snug.NewParam(snug.Const(1), 2)
	place(t, dry, p)
	if err := dry.Train(bg, func(s *snug.Scope) error { return p.In(s).Sum().Backward() }); err != nil {
		t.Fatal(err)
	}
	fails(t, d, func(s *snug.Scope) error {
		p.Grad(s).AddInPlace(ramp(s, 2))
		return nil
	})(nil, "gradient: p.0 is not on the scope's device", "at fault_test.go:")
}

// Of scopes that train one model at the same time, all but one are refused: no race.
func TestOneTakerOfGradients(t *testing.T) {
	d := open(t)
	p := snug.NewParam(snug.Const(1), 2)
	place(t, d, p)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 20 {
				err := d.Train(bg, func(s *snug.Scope) error {
					x := ramp(s, 2)
					return x.Mul(p).Sum().Backward()
				})
				if err != nil && !errors.Is(err, snug.ErrInUse) && !errors.Is(err, snug.ErrIncomplete) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := p.Zero(); err != nil {
		t.Error(err)
	}
}

// A closed device gives errors and no values.
func TestClosedDevice(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := snug.NewParam(snug.Const(3), 2)
	place(t, d, p)
	if err := d.Train(bg, func(s *snug.Scope) error { return p.In(s).Sum().Backward() }); err != nil {
		t.Fatal(err)
	}
	sgd, err := optim.NewSGD(nn.Params(&struct{ P *snug.Param }{p}), optim.DefaultSGD())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	_, get := snug.GetParam[float32](p)
	for what, err := range map[string]error{
		"infer": d.Infer(bg, func(*snug.Scope) error { return nil }),
		"get":   get,
		"set":   snug.SetParam(p, []float32{1, 2}),
		"step":  sgd.Step(),
	} {
		if err == nil || !strings.Contains(err.Error(), "the device is closed") {
			t.Error(what, err)
		}
	}
	if err := errors.Join(sgd.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	if n := d.Memory().Stats().Allocated; n != 0 || d.Memory().Stats().Categories[memory.Gradients] != 0 {
		t.Error(n)
	}
}

// What a user's function forgets to return is an error in its place, and leaks nothing.
func TestNoResult(t *testing.T) {
	d := open(t)
	base := d.Memory().Stats().Allocated
	none := func(*snug.Tensor) *snug.Tensor { return nil }
	for what, fn := range map[string]func(x *snug.Tensor){
		"block: its function returned nil": func(x *snug.Tensor) { snug.Block(none, x) },
		"block: its function returned nil in place": func(x *snug.Tensor) {
			snug.Block(none, x, checkpoint.Here())
		},
		"layer: its function returned nil": func(x *snug.Tensor) { snug.Layer(d, none, x) },
		"mine: its Forward returned nil": func(x *snug.Tensor) {
			snug.Apply(&snug.Op{Name: "mine", Forward: func(*snug.Call, ...*snug.Tensor) *snug.Tensor { return nil }}, x)
		},
		"mine: the operation has no Forward": func(x *snug.Tensor) { snug.Apply(&snug.Op{Name: "mine"}, x) },
		"mine: shapes do not fit: Forward gave [3] where Shape says [2 3]": func(x *snug.Tensor) {
			snug.Apply(&snug.Op{Name: "mine", Forward: func(_ *snug.Call, in ...*snug.Tensor) *snug.Tensor { return in[0].Sum(0) }}, x)
		},
	} {
		fails(t, d, func(s *snug.Scope) error { fn(ramp(s, 2, 3).Track()); return nil })(nil, what, "at fault_test.go:")
		if n := d.Memory().Stats().Allocated; n != base {
			t.Errorf("%s: %d bytes leak", what, n-base)
		}
	}
}

// A parameter is not closed under a scope that reads it, in OnGrad either; and one that is
// on no device is named.
func TestCloseInUse(t *testing.T) {
	d := open(t)
	p := snug.NewParam(snug.Const(1), 2)
	place(t, d, p)
	fails(t, d, func(s *snug.Scope) error {
		return p.In(s).Mul(p).Sum().Backward(snug.OnGrad(func(p *snug.Param) error { return p.Close() }))
	})(snug.ErrInUse, "close p.0")
	if p.Device() != d {
		t.Error("closed all the same")
	}
	q := snug.NewParam(snug.Const(1), 2)
	place(t, d, q)
	q.Close()
	fails(t, d, func(s *snug.Scope) error { p.In(s).Add(q); return nil })(nil, "parameter: not on a device")
}
