package optim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/golden"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

func open(t testing.TB) *snug.Device {
	t.Helper()
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func get(t testing.TB, p *snug.Param) []float64 {
	t.Helper()
	v, err := snug.GetParam[float64](p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// push adds g to p's gradient: that of the sum of g·p.
func push(t testing.TB, p *snug.Param, g []float64) {
	t.Helper()
	if err := p.Device().Train(t.Context(), func(s *snug.Scope) error {
		return snug.Upload(s, g, p.Shape()...).Cast(p.DType()).Mul(p).Sum().Backward()
	}); err != nil {
		t.Fatal(err)
	}
}

func near(got, want []float64, tol float64) bool {
	var diff, norm float64
	for i, w := range want {
		diff += (got[i] - w) * (got[i] - w)
		norm += w * w
	}
	return len(got) == len(want) && math.Sqrt(diff) <= tol*(1+math.Sqrt(norm))
}

type params = iter.Seq2[string, *snug.Param]

func one(name string, p *snug.Param) params { return maps.All(map[string]*snug.Param{name: p}) }

// optimizers are those of the golden cases, and how many states each has.
var optimizers = map[string]struct {
	states int
	make   func(p params, g ...optim.Group) (optim.Optimizer, error)
}{
	"sgd": {0, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		return optim.NewSGD(p, optim.SGDConfig{LR: 0.1}, g...)
	}},
	"sgd_momentum": {1, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		return optim.NewSGD(p, optim.DefaultSGD(), g...)
	}},
	"sgd_nesterov_wd": {1, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		return optim.NewSGD(p, optim.SGDConfig{LR: 0.1, Momentum: 0.9, Nesterov: true, WeightDecay: 0.01}, g...)
	}},
	"sgd_dampening": {1, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		return optim.NewSGD(p, optim.SGDConfig{LR: 0.1, Momentum: 0.9, Dampening: 0.1}, g...)
	}},
	"adam": {2, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultAdam()
		c.LR = 0.01
		return optim.NewAdam(p, c, g...)
	}},
	"adam_amsgrad_wd": {3, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultAdam()
		c.LR, c.AMSGrad, c.WeightDecay = 0.01, true, 0.01
		return optim.NewAdam(p, c, g...)
	}},
	"adamw": {2, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		return optim.NewAdamW(p, optim.AdamWConfig{LR: 0.01, WeightDecay: 0.1, Beta1: 0.8, Beta2: 0.95, Eps: 1e-6}, g...)
	}},
	"rmsprop": {1, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultRMSprop()
		c.Alpha = 0.9
		return optim.NewRMSprop(p, c, g...)
	}},
	"rmsprop_centered_momentum": {3, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultRMSprop()
		c.Centered, c.Momentum = true, 0.9
		return optim.NewRMSprop(p, c, g...)
	}},
	"adagrad": {1, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultAdagrad()
		c.LR = 0.1
		return optim.NewAdagrad(p, c, g...)
	}},
	"adadelta": {2, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		return optim.NewAdadelta(p, optim.DefaultAdadelta(), g...)
	}},
	"nadam": {2, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultNAdam()
		c.LR = 0.01
		return optim.NewNAdam(p, c, g...)
	}},
	"adamax": {2, func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultAdamax()
		c.LR = 0.01
		return optim.NewAdamax(p, c, g...)
	}},
}

func TestTwentySteps(t *testing.T) {
	f := golden.Load(t, "optim")
	seen := 0
	for _, name := range f.Cases() {
		w0, ok := f.Tensor(name, "w0")
		if !ok {
			continue
		}
		seen++
		grads, _ := f.Tensor(name, "grads")
		weights, _ := f.Tensor(name, "weights")
		for dtype, tol := range map[snug.DType]float64{snug.Float32: 1e-5, snug.Float64: 1e-5, snug.BFloat16: 0.05, snug.Float16: 0.01} {
			t.Run(name+" "+dtype.String(), func(t *testing.T) {
				d, p := open(t), snug.NewParam(snug.Values(w0.F), w0.Shape...)
				p.SetDType(dtype)
				if err := nn.Init(t.Context(), d, &struct{ W *snug.Param }{p}, snug.NewRand(1)); err != nil {
					t.Fatal(err)
				}
				o, err := optimizers[name].make(one("w", p))
				if err != nil {
					t.Fatal(err)
				}
				n := len(w0.F)
				for step := range 20 {
					push(t, p, grads.F[step*n:(step+1)*n])
					before := d.Memory().Stats()
					if err := o.Step(); err != nil {
						t.Fatal(err)
					}
					if after := d.Memory().Stats(); after.Allocated != before.Allocated-512 || p.HasGrad() {
						t.Fatal("the gradient was not freed, or more")
					}
					if got, want := get(t, p), weights.F[step*n:(step+1)*n]; !near(got, want, tol) {
						t.Fatalf("step %d:\n%v, want\n%v", step, got, want)
					}
				}
				if o.Steps() != 20 {
					t.Error(o.Steps(), "steps")
				}
			})
		}
	}
	if seen != len(optimizers) {
		t.Errorf("%d cases for %d optimizers", seen, len(optimizers))
	}
}

// Big parameters are shared out to threads and cut into chunks: every element is stepped
// once, whatever their number.
func TestManyElements(t *testing.T) {
	const n = 40_001
	for name, o := range optimizers {
		var first []float64
		for _, threads := range []int{1, 3} {
			d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 28, Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			p := snug.NewParam(snug.Uniform(1), n)
			if err := nn.Init(t.Context(), d, p, snug.NewRand(1)); err != nil {
				t.Fatal(err)
			}
			o, err := o.make(one("w", p))
			if err != nil {
				t.Fatal(err)
			}
			g := get(t, p)
			for range 2 {
				push(t, p, g)
				if err := o.Step(); err != nil {
					t.Fatal(err)
				}
			}
			got := get(t, p)
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Error(name, "differs with", threads, "threads")
			}
			for i, v := range got {
				if !(math.Abs(v) < math.Abs(g[i])) && math.Abs(g[i]) > 0.25 {
					t.Fatalf("%s: element %d went from %v to %v", name, i, g[i], v)
				}
			}
		}
	}
}

type model struct {
	A, B *nn.Linear
	BN   *nn.BatchNorm
}

func newModel(t testing.TB, d *snug.Device) *model {
	t.Helper()
	m := &model{nn.NewLinear(8, 6, true), nn.NewLinear(6, 3, false), nn.NewBatchNorm(6)}
	if err := nn.Init(t.Context(), d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	return m
}

// State is made with the optimizer, all of it or none, under its parameter's name.
func TestState(t *testing.T) {
	for name, c := range optimizers {
		d := open(t)
		m := newModel(t, d)
		nn.Freeze(m.B)
		base := d.Memory().Stats()
		var o optim.Optimizer
		for n := 0; ; n++ {
			var err error
			d.Memory().FailAt(n)
			o, err = c.make(nn.Params(m))
			d.Memory().FailAt(-1)
			if err == nil {
				if n != 4*c.states { // A's and BN's weight and bias
					t.Errorf("%s: %d allocations", name, n)
				}
				break
			}
			if !errors.Is(err, memory.ErrOutOfMemory) || d.Memory().Stats().Allocated != base.Allocated || o != nil {
				t.Fatal(name, n, err, o)
			}
		}
		var names []string
		for n, s := range o.State() {
			names = append(names, n)
			if s.Name() != n || !s.IsBuffer() {
				t.Error(n, s.Name())
			}
		}
		if len(names) != 4*c.states || c.states > 0 && !strings.HasPrefix(names[0], "a.weight.") {
			t.Error(name, names)
		}
		if got, want := d.Memory().Stats().Categories[memory.OptimizerState], int64(4*512*c.states); got != want {
			t.Errorf("%s: %d bytes of state, want %d", name, got, want)
		}
		for _, s := range o.State() { // as loading does
			if err := snug.SetParam(s, make([]float32, s.Len())); err != nil {
				t.Error(err)
			}
		}
		if got, want := d.Memory().Stats().Categories[memory.OptimizerState], int64(4*512*c.states); got != want {
			t.Errorf("%s: %d bytes of state once it is set, want %d", name, got, want)
		}
		if err := errors.Join(o.Close(), o.Close()); err != nil || d.Memory().Stats().Allocated != base.Allocated {
			t.Error(name, "leak", err)
		}
		if o.Step() == nil {
			t.Error(name, "steps when closed")
		}
	}
}

// What fits at step 1 fits at step 2, and a dry run knows how much that is.
func TestNoStepNeedsMoreThanTheFirst(t *testing.T) {
	var peaks []int64
	for _, device := range []string{testdevice.Name, testdevice.Dry} {
		d, err := snug.Open(device, snug.Config{LimitBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		m := newModel(t, d)
		o, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())
		if err != nil {
			t.Fatal(err)
		}
		w := optim.NewWindow(o, optim.WindowConfig{ClipNorm: 1})
		for range 3 {
			d.Memory().ResetPeak()
			if err := d.Train(t.Context(), func(s *snug.Scope) error {
				x := snug.Full(s, 0.5, snug.Float32, 4, 8)
				y := m.B.Forward(m.BN.Forward(m.A.Forward(x)))
				loss := nn.MSE(y, snug.Zeros(s, snug.Float32, 4, 3)).Add(nn.CrossEntropy(y, snug.Zeros(s, snug.Int64, 4)))
				return w.Backward(loss, 4)
			}); err != nil {
				t.Fatal(err)
			}
			if r, err := w.Step(); err != nil || !r.Stepped {
				t.Fatal(r, err)
			}
			peaks = append(peaks, d.Memory().Stats().Peak.Allocated)
		}
	}
	for _, p := range peaks {
		if p != peaks[0] {
			t.Error(peaks)
		}
	}
}

func TestGroups(t *testing.T) {
	d := open(t)
	m := newModel(t, d)
	o, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1},
		optim.Group{Match: func(n string, _ *snug.Param) bool { return strings.HasSuffix(n, ".bias") }, LR: 0.25},
		optim.Group{Match: func(_ string, p *snug.Param) bool { return len(p.Shape()) == 1 }, LR: 0.5, WeightDecay: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	ones := slices.Repeat([]float64{1}, 6)
	bias, scale := get(t, m.A.Bias), get(t, m.BN.Weight)
	push(t, m.A.Bias, ones)
	push(t, m.BN.Weight, ones)
	o.SetRate(0.5)
	if err := o.Step(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, m.A.Bias); !near(got, []float64{bias[0] - 0.125, bias[1] - 0.125, bias[2] - 0.125, bias[3] - 0.125, bias[4] - 0.125, bias[5] - 0.125}, 1e-6) {
		t.Error(bias, got)
	}
	if got := get(t, m.BN.Weight); scale[0] != 1 || got[0] != 1-0.25*1.5 {
		t.Error(got)
	}
}

// A parameter that no gradient has reached stays as it is, and so does its state.
func TestWithoutGradient(t *testing.T) {
	d := open(t)
	m := newModel(t, d)
	o, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())
	if err != nil {
		t.Fatal(err)
	}
	before := get(t, m.A.Weight)
	push(t, m.A.Bias, []float64{1, 2, 3, 4, 5, 6})
	if err := o.Step(); err != nil || !slices.Equal(get(t, m.A.Weight), before) {
		t.Error(err)
	}
}

func TestRefuses(t *testing.T) {
	d := open(t)
	m := newModel(t, d)
	for want, fn := range map[string]func() (optim.Optimizer, error){
		"sgd: LR is -1, 0 or more wanted": func() (optim.Optimizer, error) { return optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: -1}) },
		"sgd: LR is -1, 0 or more wanted; sgd: WeightDecay is -2, 0 or more wanted": func() (optim.Optimizer, error) {
			return optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: -1, WeightDecay: -2})
		},
		"sgd: LR is NaN":                     func() (optim.Optimizer, error) { return optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: math.NaN()}) },
		"adam: Eps is 0, more than 0 wanted": func() (optim.Optimizer, error) { return optim.NewAdam(nn.Params(m), optim.AdamConfig{LR: 1}) },
		"adamw: Beta2 is 1, one in [0,1) wanted": func() (optim.Optimizer, error) {
			return optim.NewAdamW(nn.Params(m), optim.AdamWConfig{Beta2: 1, Eps: 1})
		},
		"sgd: group 0 has no Match": func() (optim.Optimizer, error) { return optim.NewSGD(nn.Params(m), optim.SGDConfig{}, optim.Group{}) },
		"adagrad: weight is not on a device": func() (optim.Optimizer, error) {
			return optim.NewAdagrad(nn.Params(nn.NewLinear(1, 1, true)), optim.DefaultAdagrad())
		},
		"adamax: no parameters that are not frozen": func() (optim.Optimizer, error) { return optim.NewAdamax(nn.Params(&struct{}{}), optim.DefaultAdamax()) },
		"rmsprop: WeightDecay is +Inf, 0 or more wanted": func() (optim.Optimizer, error) {
			return optim.NewRMSprop(nn.Params(m), optim.RMSpropConfig{WeightDecay: math.Inf(1), Eps: 1})
		},
	} {
		if o, err := fn(); err == nil || o != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	o, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1})
	if err != nil {
		t.Fatal(err)
	}
	push(t, m.A.Weight, make([]float64, 48))
	err = d.Infer(t.Context(), func(s *snug.Scope) error { m.A.Weight.In(s); return o.Step() })
	if !errors.Is(err, snug.ErrInUse) || o.Steps() != 0 || !m.A.Weight.HasGrad() {
		t.Error(err, o.Steps())
	}
}

func TestOptimizerNumbers(t *testing.T) {
	d := open(t)
	m := newModel(t, d)
	o, err := optim.NewNAdam(nn.Params(m), optim.DefaultNAdam())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"steps":41}`), o); err != nil || o.Steps() != 41 {
		t.Error(err, o.Steps())
	}
	if b, err := json.Marshal(o); err != nil || string(b) != `{"steps":41}` {
		t.Error(string(b), err)
	}
	if err := json.Unmarshal([]byte(`{"steps":-1}`), o); err == nil || o.Steps() != 41 {
		t.Error(err, o.Steps())
	}
}

var ctx = context.Background()

func BenchmarkStep(b *testing.B) {
	const n = 1 << 22
	for name, o := range optimizers {
		b.Run(name, func(b *testing.B) {
			d, p := open(b), snug.NewParam(snug.Const(1), n)
			if err := nn.Init(b.Context(), d, p, snug.NewRand(1)); err != nil {
				b.Fatal(err)
			}
			o, err := o.make(one("w", p))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				if err := d.Train(b.Context(), func(s *snug.Scope) error { return p.In(s).Sum().Backward() }); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := o.Step(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/param")
		})
	}
}

// A model of many small parameters, as convolutional ones are: most are of norms.
func BenchmarkManySmall(b *testing.B) {
	for _, clip := range []float64{0, 1} {
		b.Run(fmt.Sprintf("clip %v", clip), func(b *testing.B) {
			d := open(b)
			var ps []*snug.Param
			for range 50 {
				ps = append(ps, snug.NewParam(snug.Const(1), 128, 128), snug.NewParam(snug.Const(1), 128), snug.NewParam(snug.Const(1), 128))
			}
			m := struct{ P []*snug.Param }{ps}
			if err := nn.Init(b.Context(), d, m, snug.NewRand(1)); err != nil {
				b.Fatal(err)
			}
			o, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())
			if err != nil {
				b.Fatal(err)
			}
			w := optim.NewWindow(o, optim.WindowConfig{ClipNorm: clip})
			for b.Loop() {
				b.StopTimer()
				if err := d.Train(b.Context(), func(s *snug.Scope) error {
					loss := ps[0].In(s).Sum()
					for _, p := range ps[1:] {
						loss = loss.Add(p.In(s).Sum())
					}
					return w.Backward(loss, 1)
				}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, err := w.Step(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A parameter has one optimizer at a time: another is refused and leaves nothing, until the
// first is closed, or the parameter.
func TestTwoOptimizersOfOneParameter(t *testing.T) {
	d := open(t)
	m := &struct{ A, B *snug.Param }{snug.NewParam(nil, 3), snug.NewParam(nil, 3)}
	if err := nn.Init(t.Context(), d, m, nil); err != nil {
		t.Fatal(err)
	}
	first, err := optim.NewSGD(one("b", m.B), optim.SGDConfig{LR: 1})
	if err != nil {
		t.Fatal(err)
	}
	base := d.Memory().Stats().Allocated
	if _, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW()); !errors.Is(err, snug.ErrInUse) || !strings.Contains(err.Error(), "adamw: b: in use by another optimizer, sgd") {
		t.Error(err)
	}
	if n := d.Memory().Stats().Allocated; n != base {
		t.Errorf("%d bytes leak", n-base)
	}
	beside, err := optim.NewAdamW(one("a", m.A), optim.DefaultAdamW())
	if err != nil {
		t.Fatal("of what the refused one had taken already:", err)
	}
	first.Close()
	second, err := optim.NewSGD(one("b", m.B), optim.SGDConfig{LR: 1})
	if err != nil {
		t.Fatal(err)
	}
	first.Close() // again
	if _, err := optim.NewSGD(one("b", m.B), optim.SGDConfig{LR: 1}); !errors.Is(err, snug.ErrInUse) {
		t.Error(err)
	}
	if err := nn.Close(m); err != nil {
		t.Fatal(err)
	}
	if err := nn.Init(t.Context(), d, m, nil); err != nil {
		t.Fatal(err)
	}
	third, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []optim.Optimizer{second, beside} { // of parameters as they were
		o.Close()
	}
	if _, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1}); !errors.Is(err, snug.ErrInUse) {
		t.Error(err)
	}
	third.Close()
}
