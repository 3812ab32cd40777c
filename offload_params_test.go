package snug_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// awayRun has the parameters on the host, all of them or those of the blocks.
func awayRun(t *testing.T, device string, o ...snug.Option) *run {
	t.Helper()
	m := newNet(1)
	d, err := snug.Open(device, snug.Config{LimitBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r := &run{dev: d, rng: snug.NewRand(7), m: m}
	if err := offload.Params(nn.Params(m)); err != nil { // before: they are never on the device
		t.Fatal(err)
	}
	if err := nn.Init(bg, d, m, r.rng); err != nil {
		t.Fatal(err)
	}
	if n := d.Memory().Stats().Categories[memory.Parameters]; n != 0 {
		t.Errorf("%d bytes of parameters on the device", n)
	}
	if r.o, err = optim.NewAdamW(nn.Params(m), optim.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	r.w, r.opts = optim.NewWindow(r.o, optim.WindowConfig{}), append(o, snug.Random(r.rng))
	return r
}

// Parameters on the host are on the device a block at a time, and no bit is another.
func TestOffloadParams(t *testing.T) {
	const block = 2*(32*32*4+512) + 2*512 // of one: two dense layers, and two scales
	for name, o := range map[string][]snug.Option{
		"": nil, "ahead": {ahead(8 << 10)}, "checkpoint": {checkpoint.Every(1)}, "autocast": {amp.Autocast(snug.BFloat16)},
		"all": {checkpoint.Every(2), amp.Autocast(snug.BFloat16), ahead(8 << 10)},
	} {
		for _, step := range []func(*optim.Window, *snug.Tensor, float64) error{nil, backwardStep} {
			plain := newRun(t, testdevice.Name, newNet(1), o...)
			plain.step = step
			steps(t, plain)
			var stats [2][2]memory.Stats
			for i, device := range []string{testdevice.Dry, testdevice.Name} {
				r := awayRun(t, device, o...)
				r.step = step
				base := r.dev.Memory().Stats().Allocated
				steps(t, r)
				d := r.dev.Memory().Stats()
				stats[i] = [2]memory.Stats{d, r.dev.Host().Stats()}
				if d.Allocated != base {
					t.Errorf("%s: %d bytes are left", name, d.Allocated-base)
				}
				if n := d.AtPeak[memory.Parameters]; n > 2*block {
					t.Errorf("%s: %d bytes of parameters at the peak, a block has %d", name, n, block)
				}
				if device == testdevice.Name {
					if n := differ(plain.bits(t), r.bits(t)); n != 0 {
						t.Errorf("%s: %d values differ", name, n)
					}
				}
			}
			if stats[0] != stats[1] {
				t.Errorf("%s: predicted %+v\nmeasured %+v", name, stats[0], stats[1])
			}
			t.Logf("%-12s parameters at the peak %d of %d, peak %d, plain %d", name, stats[1][0].AtPeak[memory.Parameters],
				plain.dev.Memory().Stats().Categories[memory.Parameters], stats[1][0].Peak.Allocated, plain.dev.Memory().Stats().Peak.Allocated)
		}
	}
}

func TestOffloadParamsAllocationMayFail(t *testing.T) {
	sweep(t, func() *run {
		r := awayRun(t, testdevice.Name, checkpoint.Every(3), ahead(8<<10), amp.Autocast(snug.BFloat16))
		if err := r.train(8, 2, 0); err != nil {
			t.Fatal(err)
		}
		return r
	}, func(d *snug.Device) *memory.Pool { return d.Memory() }, 2)
}

// Placed parameters move all or none, with their values, and may be read and set there.
func TestOffloadParamsMove(t *testing.T) {
	d, m := open(t), newNet(1)
	if err := nn.Init(bg, d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	before, base := valuesOf(t, m.FC.W), d.Memory().Stats().Categories[memory.Parameters]
	for n := range 5 {
		d.Host().FailAt(n)
		err := offload.Params(nn.Params(m))
		if d.Host().FailAt(-1); !errors.Is(err, memory.ErrOutOfMemory) {
			t.Fatal(err)
		}
		if a, b := d.Memory().Stats().Categories[memory.Parameters], d.Host().Stats().Allocated; a != base || b != 0 {
			t.Fatal(a, base, b)
		}
	}
	if err := d.Infer(bg, func(s *snug.Scope) error {
		m.FC.W.In(s)
		if err := offload.Params(nn.Params(m)); !errors.Is(err, snug.ErrInUse) {
			t.Error(err)
		}
		return nil
	}); err != nil || d.Host().Stats().Allocated != 0 {
		t.Fatal(err)
	}
	for range 2 { // again changes nothing
		if err := offload.Params(nn.Params(m)); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := d.Memory().Stats().Categories[memory.Parameters], d.Host().Stats().Allocated; a != 0 || b != base {
		t.Error(a, b, base)
	}
	if !slices.Equal(before, valuesOf(t, m.FC.W)) {
		t.Error("other values")
	}
	v := batch(32*8, 1, 9)
	if err := snug.SetParam(m.FC.W, v); err != nil {
		t.Fatal(err)
	}
	other := newNet(1)
	if err := nn.Init(bg, d, other, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(nn.Lerp(other, m, 0.5), nn.Lerp(m, other, 1)); err != nil {
		t.Fatal(err)
	}
	if got, err := snug.GetParam[float32](m.FC.W); err != nil || got[7] != v[7]/2 {
		t.Error(err, got[7], v[7])
	}
	if err := errors.Join(nn.Close(m), nn.Close(other)); err != nil {
		t.Fatal(err)
	}
	if a, b := d.Memory().Stats().Allocated, d.Host().Stats().Allocated; a != 0 || b != 0 {
		t.Error(a, b)
	}
}

// A value that a scope has read is not read again once OnGrad has updated it on the host.
func TestOffloadParamsUpdated(t *testing.T) {
	r := awayRun(t, testdevice.Name)
	err := r.dev.Train(bg, func(s *snug.Scope) error {
		l := mse(r.m.Forward(ramp(s, 8, 24)), ramp(s, 8, 8))
		if _, err := r.w.BackwardStep(l, 8); err != nil {
			return err
		}
		_, err := snug.Download[float32](r.m.(*net).FC.W.In(s))
		return err
	}, r.opts...)
	if err == nil || !strings.Contains(err.Error(), "written by adam") {
		t.Error(err)
	}
}

// From the second time on, parameters come before the Block that reads them, as far as there
// is room: in forward, in inference, and in the second run of a recomputed Block.
func TestOffloadParamsAhead(t *testing.T) {
	type chain struct{ Layers []*nn.Linear }
	for _, c := range []struct {
		name  string
		ahead int64
		train bool
		opts  []snug.Option
		want  [2][]int64 // layers on the device while each runs, the first time and then
	}{
		{"waiting", 0, false, nil, [2][]int64{{1, 1, 1, 1}, {1, 1, 1, 1}}},
		{"one ahead", 5 << 10, false, nil, [2][]int64{{1, 1, 1, 1}, {2, 2, 2, 1}}},
		{"all", 1 << 20, false, nil, [2][]int64{{1, 1, 1, 1}, {4, 3, 2, 1}}},
		{"training", 5 << 10, true, nil, [2][]int64{{1, 1, 1, 1}, {2, 2, 2, 1}}},
		// Its second run comes when all have been read once, and is for its own layers.
		{"recomputed", 5 << 10, true, []snug.Option{checkpoint.Every(1)}, [2][]int64{{1, 1, 1, 1, 2, 2, 2, 1}, {2, 2, 2, 1, 2, 2, 2, 1}}},
	} {
		var got [2][2][]int64
		for i, device := range []string{testdevice.Dry, testdevice.Name} {
			d, err := snug.Open(device, snug.Config{})
			if err != nil {
				t.Fatal(err)
			}
			m := &chain{}
			for range 4 {
				m.Layers = append(m.Layers, nn.NewLinear(32, 32, false))
			}
			if err := errors.Join(offload.Params(nn.Params(m)), nn.Init(bg, d, m, snug.NewRand(1))); err != nil {
				t.Fatal(err)
			}
			host := d.Host().Stats().Allocated
			var values [2][]float32
			for k := range 2 {
				if err := optim.Zero(nn.Params(m)); err != nil {
					t.Fatal(err)
				}
				start := d.Infer
				if c.train {
					start = d.Train
				}
				if err := start(bg, func(s *snug.Scope) (err error) {
					y := ramp(s, 4, 32)
					run := func(l *nn.Linear) func(x *snug.Tensor) *snug.Tensor {
						return func(x *snug.Tensor) *snug.Tensor {
							x = l.Forward(x)
							got[i][k] = append(got[i][k], d.Memory().Stats().Categories[memory.Parameters]/(32*32*4))
							return x.Tanh()
						}
					}
					if len(c.opts) > 0 { // one Block around all
						y = snug.Block(func(x *snug.Tensor) *snug.Tensor {
							for _, l := range m.Layers {
								x = snug.Block(run(l), x)
							}
							return x
						}, y)
					} else {
						for _, l := range m.Layers {
							y = snug.Block(run(l), y)
						}
					}
					if device == testdevice.Name {
						if values[k], err = snug.Download[float32](y); err != nil {
							return err
						}
					}
					if !c.train {
						return nil
					}
					return y.Sum().Backward()
				}, append(c.opts, offload.Activations(offload.Config{MinBytes: 1 << 40, AheadBytes: c.ahead}))...); err != nil {
					t.Fatal(c.name, err)
				}
				if n := d.Memory().Stats().Categories[memory.Parameters]; n != 0 || d.Host().Stats().Allocated != host {
					t.Errorf("%s: %d bytes of parameters stay", c.name, n)
				}
				if want := c.want[k]; !slices.Equal(got[i][k], want) {
					t.Errorf("%s on %s, run %d: %v layers on the device, want %v", c.name, device, k, got[i][k], want)
				}
			}
			if !slices.Equal(values[0], values[1]) {
				t.Errorf("%s: other bits", c.name)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Parameters, and their casts, are no activations: they stay, although products save them.
func TestOffloadLeavesParameters(t *testing.T) {
	for name, o := range map[string][]snug.Option{"": nil, "autocast": {amp.Autocast(snug.BFloat16)}} {
		d, l := open(t), newDense(256, 256)
		if err := nn.Init(bg, d, l, snug.NewRand(1)); err != nil {
			t.Fatal(err)
		}
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := ramp(s, 4, 256).Track()
			y := snug.Block(l.Forward, x)
			if h := d.Host().Stats().Allocated; h == 0 || h >= 256*256*2 {
				t.Errorf("%s: %d bytes on the host", name, h)
			}
			return y.Sum().Backward()
		}, append(o, ahead(0))...); err != nil {
			t.Fatal(err)
		}
	}
}
