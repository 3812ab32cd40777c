package optim_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

// tiedNet uses its first weight twice.
type tiedNet struct {
	In, Mid, Up *nn.Linear
	Drop        *nn.Dropout
}

func (m *tiedNet) Forward(x *snug.Tensor) *snug.Tensor {
	x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return m.Drop.Forward(m.In.Forward(x).GELU()) }, x)
	x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return m.Mid.Forward(x).Tanh() }, x)
	x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return m.Up.Forward(x).Tanh() }, x)
	return m.In.Forward(x)
}

// Two backward passes clip and unscale as Step does, to the bit, and hold the gradients of
// two weights at most: the one used twice, and the one that is being made.
func TestBackwardStepInTwoPasses(t *testing.T) {
	run := func(c optim.WindowConfig, inside bool, o ...snug.Option) (bits []uint32, results []optim.Result, gradients int64) {
		d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		rng := snug.NewRand(4)
		m := &tiedNet{nn.NewLinear(64, 64, true), nn.NewLinear(64, 64, true), nn.NewLinear(64, 64, true), nn.NewDropout(0.2)}
		if err := nn.Init(t.Context(), d, m, rng); err != nil {
			t.Fatal(err)
		}
		adam := must(optim.NewAdamW(nn.Params(m), optim.DefaultAdamW()))
		w := optim.NewWindow(adam, c)
		base := d.Memory().Stats().Allocated
		for i := range 4 {
			scale := 1.0
			if i == 1 && c.Scaler != nil {
				scale = math.Inf(1) // overflows
			}
			err := d.Train(t.Context(), func(s *snug.Scope) error {
				x := snug.RandNormal(s, snug.Float32, 8, 64)
				loss := m.Forward(x).Square().Mean().MulScalar(scale)
				if !inside {
					return w.Backward(loss, 8)
				}
				r, err := w.BackwardStep(loss, 8)
				results = append(results, r)
				return err
			}, append(o, snug.Random(rng))...)
			if err != nil {
				t.Fatal(err)
			}
			if !inside {
				results = append(results, step(t, w))
			}
			if n := d.Memory().Stats().Allocated; n != base {
				t.Fatalf("step %d: %d bytes leak", i, n-base)
			}
		}
		for _, p := range nn.Params(m) {
			for _, v := range must(snug.GetParam[float32](p)) {
				bits = append(bits, math.Float32bits(v))
			}
		}
		return bits, results, d.Memory().Stats().AtPeak[memory.Gradients]
	}
	for name, c := range map[string]func() optim.WindowConfig{
		"clip": func() optim.WindowConfig { return optim.WindowConfig{ClipNorm: 0.01, TwoPass: true} },
		"scale": func() optim.WindowConfig {
			return optim.WindowConfig{Scaler: amp.NewScaler(amp.DefaultScaler()), TwoPass: true}
		},
		"both": func() optim.WindowConfig {
			return optim.WindowConfig{ClipNorm: 0.01, Scaler: amp.NewScaler(amp.DefaultScaler()), TwoPass: true}
		},
	} {
		want, steps, _ := run(c(), false)
		for saver, o := range map[string][]snug.Option{"plain": nil, "recomputed": {checkpoint.Every(1)}} {
			bits, results, gradients := run(c(), true, o...)
			if !slices.Equal(bits, want) {
				t.Errorf("%s, %s: other bits than Step's", name, saver)
			}
			if fmt.Sprint(results) != fmt.Sprint(steps) { // a NaN is not equal to itself
				t.Errorf("%s, %s: %v, want %v", name, saver, results, steps)
			}
			if two := int64(2*64*64*4 + 512); gradients > two {
				t.Errorf("%s, %s: %d bytes of gradients at the peak, two weights' are %d", name, saver, gradients, two)
			}
		}
	}
}

func TestTwoPassesOfAccumulationAreRefused(t *testing.T) {
	d := must(snug.Open(testdevice.Name, snug.Config{LimitBytes: 64 << 20}))
	defer d.Close()
	m := newScalar(t, d)
	w := window(t, m, optim.WindowConfig{ClipNorm: 1, TwoPass: true})
	feed(t, w, m, 1, 1)
	err := d.Train(t.Context(), func(s *snug.Scope) error {
		_, err := w.BackwardStep(m.loss(s, 1), 1)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "would free the gradients of earlier micro-batches") {
		t.Error(err)
	}
	if err := w.Drop(); err != nil {
		t.Error(err)
	}
}

// BackwardStep has the bits of Backward and Step, over what came before it in other scopes
// and in its own.
func TestBackwardStep(t *testing.T) {
	run := func(last func(w *optim.Window, l *snug.Tensor, n float64) error, after func(w *optim.Window) error) []float64 {
		d := open(t)
		m := newModel(t, d)
		o, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())
		if err != nil {
			t.Fatal(err)
		}
		w := optim.NewWindow(o, optim.WindowConfig{Schedule: optim.Exponential(0.5)})
		loss := func(s *snug.Scope, v float64, n int) *snug.Tensor {
			x := make([]float32, n*8)
			for i := range x {
				x[i] = float32(math.Sin(float64(i) + v))
			}
			return nn.MSE(m.B.Forward(m.BN.Forward(m.A.Forward(snug.Upload(s, x, n, 8)))), snug.Zeros(s, snug.Float32, n, 3))
		}
		for i := range 3 {
			for _, err := range []error{
				d.Train(t.Context(), func(s *snug.Scope) error { return w.Backward(loss(s, 1, 5), 5) }),
				d.Train(t.Context(), func(s *snug.Scope) error {
					if err := w.Backward(loss(s, 2, 3), 3); err != nil {
						return err
					}
					return last(w, loss(s, 3, 2), float64(2*(i%2))) // the second window's last one counts nothing
				}, checkpoint.Every(1)),
				after(w),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if o.Steps() != 3 {
			t.Error(o.Steps())
		}
		var all []float64
		for _, p := range nn.Params(m) {
			if p.HasGrad() {
				t.Error(p.Name(), "has a gradient left")
			}
			all = append(all, get(t, p)...)
		}
		return all
	}
	plain := run(func(w *optim.Window, l *snug.Tensor, n float64) error { return w.Backward(l, n) },
		func(w *optim.Window) error { _, err := w.Step(); return err })
	at := 0
	parts := run(func(w *optim.Window, l *snug.Tensor, n float64) error {
		r, err := w.BackwardStep(l, n)
		if want := 8 + float64(2*(at%2)); err == nil && (!r.Stepped || r.Count != want) {
			t.Error(r, want)
		}
		at++
		return err
	}, func(w *optim.Window) error { // all was done
		r, err := w.Step()
		if r.Stepped || r.Count != 0 {
			t.Error(r)
		}
		return err
	})
	if !slices.Equal(plain, parts) {
		t.Error("other bits")
	}
}

func TestBackwardStepRefuses(t *testing.T) {
	d := open(t)
	m := newScalar(t, d)
	own := optim.NewWindow(struct{ optim.Optimizer }{must(optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1}))}, optim.WindowConfig{})
	if err := d.Train(t.Context(), func(s *snug.Scope) error { _, err := own.BackwardStep(m.loss(s, 1), 1); return err }); err == nil || !strings.Contains(err.Error(), "does not step one parameter at a time") || m.W.HasGrad() {
		t.Error(err)
	}
	for _, c := range []optim.WindowConfig{{ClipNorm: 1}, {Scaler: amp.NewScaler(amp.DefaultScaler())}} {
		m := newScalar(t, d)
		w := window(t, m, c)
		err := d.Train(t.Context(), func(s *snug.Scope) error { _, err := w.BackwardStep(m.loss(s, 1), 1); return err })
		if err == nil || !strings.Contains(err.Error(), "all gradients at once") || m.W.HasGrad() {
			t.Error(err)
		}
	}
	m = newScalar(t, d)
	w := window(t, m, optim.WindowConfig{})
	if err := d.Train(t.Context(), func(s *snug.Scope) error { _, err := w.BackwardStep(m.loss(s, 1), 0); return err }); err != nil || get(t, m.W)[0] != 0 {
		t.Error(err)
	}
	feed(t, w, m, 2, 4)
	if err := d.Train(t.Context(), func(s *snug.Scope) error { // all labels masked, at last
		r, err := w.BackwardStep(m.loss(s, math.NaN()), 0)
		if !r.Stepped || r.Count != 4 {
			t.Error(r)
		}
		return err
	}); err != nil || get(t, m.W)[0] != -2 {
		t.Error(err, get(t, m.W))
	}
	boom := errors.New("boom")
	err := d.Train(t.Context(), func(s *snug.Scope) error { // a failure after an update cannot be undone
		if _, err := w.BackwardStep(m.loss(s, 1), 1); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, snug.ErrTorn) || !errors.Is(err, boom) {
		t.Error(err)
	}
	if err := d.Train(t.Context(), func(s *snug.Scope) error { return w.Backward(m.loss(s, 1).Detach(), 1) }); err == nil || !strings.Contains(err.Error(), "wants a gradient") {
		t.Error(err)
	}
}
