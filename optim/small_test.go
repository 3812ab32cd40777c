package optim_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

type maker func(p params, g ...optim.Group) (optim.Optimizer, error)

func adamw(d snug.DType, r optim.Rounding) maker {
	return func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultAdamW()
		c.StateDType, c.Rounding = d, r
		return optim.NewAdamW(p, c, g...)
	}
}

func sgd(d snug.DType, r optim.Rounding) maker {
	return func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultSGD()
		c.StateDType, c.Rounding = d, r
		return optim.NewSGD(p, c, g...)
	}
}

func adafactor(r optim.Rounding) maker {
	return func(p params, g ...optim.Group) (optim.Optimizer, error) {
		c := optim.DefaultAdafactor()
		c.Rounding = r
		return optim.NewAdafactor(p, c, g...)
	}
}

var stochastic = optim.Rounding{Stochastic: true, Seed: 3}

// small are the optimizers with a small state, over parameters of a type.
var small = map[string]struct {
	weights snug.DType
	make    maker
}{
	"adamw 8bit":                   {snug.Float32, adamw(snug.Uint8, optim.Rounding{})},
	"adamw 8bit of bfloat16":       {snug.BFloat16, adamw(snug.Uint8, stochastic)},
	"adamw 8bit of float16":        {snug.Float16, adamw(snug.Uint8, optim.Rounding{})},
	"adamw bfloat16":               {snug.Float32, adamw(snug.BFloat16, optim.Rounding{})},
	"adamw bfloat16 stochastic":    {snug.Float32, adamw(snug.BFloat16, stochastic)},
	"adamw bfloat16 of float64":    {snug.Float64, adamw(snug.BFloat16, stochastic)},
	"adamw all in bfloat16":        {snug.BFloat16, adamw(snug.BFloat16, stochastic)},
	"sgd all in bfloat16":          {snug.BFloat16, sgd(snug.BFloat16, stochastic)},
	"sgd bfloat16":                 {snug.Float32, sgd(snug.BFloat16, optim.Rounding{})},
	"adafactor":                    {snug.Float32, adafactor(optim.Rounding{})},
	"adafactor of float64":         {snug.Float64, adafactor(optim.Rounding{})},
	"adafactor of bfloat16":        {snug.BFloat16, adafactor(stochastic)},
	"adamw of bfloat16 stochastic": {snug.BFloat16, adamw(snug.Float32, stochastic)},
}

// wide is a model with a matrix and a vector that are large enough for 8 bits, and no
// multiple of a block.
type wide struct {
	A     *nn.Linear
	B     *nn.Linear
	Scale *snug.Param
}

func newWide(t testing.TB, d *snug.Device, dtype snug.DType) *wide {
	t.Helper()
	m := &wide{nn.NewLinear(65, 300, true), nn.NewLinear(300, 5, false), snug.NewParam(snug.Uniform(1), 19500)}
	if err := errors.Join(nn.SetDType(m, dtype), nn.Init(t.Context(), d, m, snug.NewRand(1))); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *wide) loss(s *snug.Scope, seed float64) *snug.Tensor {
	x := make([]float64, 4*65)
	for i := range x {
		x[i] = math.Sin(float64(i)*0.7 + seed)
	}
	in := snug.Upload(s, x, 4, 65).Cast(m.Scale.DType())
	y := m.B.Forward(m.A.Forward(in).ReLU())
	return y.Square().Mean().Add(m.A.Weight.In(s).Mul(m.Scale.In(s).Reshape(300, 65)).Square().Mean())
}

// values are of the model and of the optimizer's state.
func values(t testing.TB, m any, o optim.Optimizer) map[string][]float64 {
	all := map[string][]float64{}
	for n, p := range nn.Params(m) {
		all[n] = get(t, p)
	}
	for n, p := range o.State() {
		all[n] = get(t, p)
	}
	return all
}

func differ(a, b map[string][]float64) string {
	for n, v := range a {
		if !slices.Equal(v, b[n]) {
			return n
		}
	}
	return ""
}

// The bits are the same for every number of threads, when each parameter is updated in
// backward, and after the state has been saved and restored. Groups and schedules count.
func TestSmallStateSameBits(t *testing.T) {
	for name, c := range small {
		t.Run(name, func(t *testing.T) {
			run := func(threads int, inside bool, restore int) map[string][]float64 {
				make := func() (*wide, optim.Optimizer, *optim.Window) {
					d := must(snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 30, Threads: threads}))
					t.Cleanup(func() { d.Close() })
					m := newWide(t, d, c.weights)
					o := must(c.make(nn.Params(m), optim.Group{Match: func(n string, _ *snug.Param) bool { return strings.HasSuffix(n, "bias") }, LR: 0.02}))
					return m, o, optim.NewWindow(o, optim.WindowConfig{Schedule: optim.Exponential(0.5)})
				}
				m, o, w := make()
				for i := range 3 {
					if i == restore {
						old, numbers := values(t, m, o), must(json.Marshal(w))
						m, o, w = make()
						for _, ps := range []params{nn.Params(m), o.State()} {
							for n, p := range ps {
								if err := snug.SetParam(p, old[n]); err != nil {
									t.Fatal(err)
								}
							}
						}
						if err := json.Unmarshal(numbers, w); err != nil {
							t.Fatal(err)
						}
					}
					err := m.Scale.Device().Train(t.Context(), func(s *snug.Scope) error {
						if inside {
							_, err := w.BackwardStep(m.loss(s, float64(i)), 4)
							return err
						}
						return w.Backward(m.loss(s, float64(i)), 4)
					})
					if err != nil {
						t.Fatal(err)
					}
					if !inside {
						step(t, w)
					}
				}
				return values(t, m, o)
			}
			plain := run(1, false, -1)
			for what, other := range map[string]map[string][]float64{
				"three threads": run(3, false, -1), "a step in backward": run(2, true, -1), "restored": run(2, false, 1),
			} {
				if n := differ(plain, other); n != "" || len(plain) != len(other) {
					t.Errorf("%s differs with %s", n, what)
				}
			}
			for n, v := range plain {
				if strings.Count(n, ".") > 0 && !slices.ContainsFunc(v, func(x float64) bool { return x != 0 }) {
					t.Error(n, "is 0")
				}
			}
		})
	}
}

// New is all or nothing; Step allocates nothing, and in a scope refuses before it has
// changed anything; Close frees all.
func TestSmallStateIsAllOrNothing(t *testing.T) {
	for name, c := range small {
		d := open(t)
		m := newWide(t, d, c.weights)
		base := d.Memory().Stats().Allocated
		var o optim.Optimizer
		for n := 0; o == nil; n++ {
			var err error
			d.Memory().FailAt(n)
			o, err = c.make(nn.Params(m))
			d.Memory().FailAt(-1)
			if o == nil && (!errors.Is(err, memory.ErrOutOfMemory) || d.Memory().Stats().Allocated != base) {
				t.Fatal(name, n, err, d.Memory().Stats().Allocated-base)
			}
		}
		for n, s := range o.State() {
			if s.Name() != n || !s.IsBuffer() {
				t.Error(name, n, s.Name())
			}
		}
		if err := d.Train(t.Context(), func(s *snug.Scope) error { return m.loss(s, 1).Backward() }); err != nil {
			t.Fatal(err)
		}
		before := values(t, m, o)
		err := d.Infer(t.Context(), func(s *snug.Scope) error { m.B.Weight.In(s); return o.Step() })
		if !errors.Is(err, snug.ErrInUse) || o.Steps() != 0 || differ(before, values(t, m, o)) != "" {
			t.Error(name, "in a scope:", err, o.Steps(), differ(before, values(t, m, o)))
		}
		d.Memory().FailAt(0)
		err = o.Step()
		d.Memory().FailAt(-1)
		if err != nil || differ(before, values(t, m, o)) == "" {
			t.Error(name, err)
		}
		if err := errors.Join(o.Close(), o.Close()); err != nil || d.Memory().Stats().Allocated != base {
			t.Error(name, "leaks", d.Memory().Stats().Allocated-base, err)
		}
	}
}

// A dry run takes the memory of a real one, to the byte.
func TestSmallStateDry(t *testing.T) {
	for name, c := range small {
		var peaks []int64
		for _, device := range []string{testdevice.Name, testdevice.Dry} {
			d := must(snug.Open(device, snug.Config{LimitBytes: 1 << 30, Threads: 2}))
			m := newWide(t, d, c.weights)
			o := must(c.make(nn.Params(m)))
			err := d.Train(t.Context(), func(s *snug.Scope) error { return m.loss(s, 1).Backward() })
			if err := errors.Join(err, o.Step()); err != nil {
				t.Fatal(name, device, err)
			}
			peaks = append(peaks, d.Memory().Stats().Peak.Allocated)
			d.Close()
		}
		if peaks[0] != peaks[1] {
			t.Error(name, peaks)
		}
	}
}

// What every optimizer keeps, in bytes a parameter.
func TestStateBytes(t *testing.T) {
	const rows, cols = 512, 1024
	factors := 4. * (rows + cols) / (rows * cols)
	table := map[string]float64{
		"sgd": 0, "sgd_momentum": 4, "sgd_nesterov_wd": 4, "sgd_dampening": 4, "adam": 8, "adam_amsgrad_wd": 12, "adamw": 8,
		"rmsprop": 4, "rmsprop_centered_momentum": 12, "adagrad": 4, "adadelta": 8, "nadam": 8, "adamax": 8,
		"adamw 8bit": 2.03125, "adamw 8bit of bfloat16": 2.03125, "adamw 8bit of float16": 2.03125,
		"adamw bfloat16": 4, "adamw bfloat16 stochastic": 4, "adamw bfloat16 of float64": 4, "adamw all in bfloat16": 4,
		"sgd all in bfloat16": 2, "sgd bfloat16": 2, "adamw of bfloat16 stochastic": 8,
		"adafactor": factors, "adafactor of bfloat16": factors, "adafactor of float64": 2 * factors,
	}
	check := func(name string, weights snug.DType, make maker) {
		d, p := open(t), snug.NewParam(nil, rows, cols)
		p.SetDType(weights)
		if err := nn.Init(t.Context(), d, p, nil); err != nil {
			t.Fatal(err)
		}
		o := must(make(one("w", p)))
		var bytes int64
		for _, s := range o.State() {
			bytes += int64(s.Len() * s.DType().Size())
		}
		want, ok := table[name]
		got := d.Memory().Stats().Categories[memory.OptimizerState] // all are multiples of 512
		if !ok || float64(bytes) != want*rows*cols || got != bytes {
			t.Errorf("%s: %d bytes, and %d on the device, want %v", name, bytes, got, want*rows*cols)
		}
	}
	for name, c := range optimizers {
		check(name, snug.Float32, c.make)
	}
	for name, c := range small {
		check(name, c.weights, c.make)
	}
	if len(table) != len(optimizers)+len(small) {
		t.Error("the table has", len(table))
	}
}

func TestSmallStateRefuses(t *testing.T) {
	d := open(t)
	f64, f16 := newWide(t, d, snug.Float64), newWide(t, d, snug.Float16)
	amsgrad := optim.DefaultAdamW()
	amsgrad.AMSGrad, amsgrad.StateDType = true, snug.Uint8
	for want, fn := range map[string]func() (optim.Optimizer, error){
		"adamw: a.weight: types do not fit: it is float64":              func() (optim.Optimizer, error) { return adamw(snug.Uint8, optim.Rounding{})(nn.Params(f64)) },
		"adamw: a.weight: types do not fit: it is float16":              func() (optim.Optimizer, error) { return adamw(snug.BFloat16, stochastic)(nn.Params(f16)) },
		"sgd: StateDType is uint8, one of [float32 bfloat16] wanted":    func() (optim.Optimizer, error) { return sgd(snug.Uint8, stochastic)(nn.Params(f64)) },
		"adamw: StateDType is float16, one of [float32 bfloat16 uint8]": func() (optim.Optimizer, error) { return adamw(snug.Float16, stochastic)(nn.Params(f16)) },
		"adamw: AMSGrad has no form in 8 bits":                          func() (optim.Optimizer, error) { return optim.NewAdamW(nn.Params(f16), amsgrad) },
		"adafactor: Clip is 0, more than 0 wanted":                      func() (optim.Optimizer, error) { return optim.NewAdafactor(nn.Params(f16), optim.AdafactorConfig{}) },
	} {
		base := d.Memory().Stats().Allocated
		if o, err := fn(); err == nil || o != nil || !strings.Contains(err.Error(), want) || d.Memory().Stats().Allocated != base {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func BenchmarkSmallStep(b *testing.B) {
	const rows, cols = 1024, 1024
	run := func(name string, weights snug.DType, make maker) {
		b.Run(name, func(b *testing.B) {
			d, p := open(b), snug.NewParam(snug.Uniform(1), rows, cols)
			p.SetDType(weights)
			if err := nn.Init(b.Context(), d, p, snug.NewRand(1)); err != nil {
				b.Fatal(err)
			}
			o := must(make(one("w", p)))
			for b.Loop() {
				b.StopTimer()
				if err := d.Train(b.Context(), func(s *snug.Scope) error { return p.In(s).Square().Mean().Backward() }); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := o.Step(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*rows*cols/b.Elapsed().Seconds()/1e6, "Mparam/s")
		})
	}
	run("adamw", snug.Float32, optimizers["adamw"].make)
	for name, c := range small {
		run(name, c.weights, c.make)
	}
}
