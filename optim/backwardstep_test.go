package optim_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

// tiedNet uses its first weight twice.
type tiedNet struct {
	In, Mid *nn.Linear
	Drop    *nn.Dropout
}

func (m *tiedNet) Forward(x *snug.Tensor) *snug.Tensor {
	x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return m.Drop.Forward(m.In.Forward(x).GELU()) }, x)
	x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return m.Mid.Forward(x).Tanh() }, x)
	return m.In.Forward(x)
}

// Two backward passes clip and unscale as Step does, to the bit, and hold no more than one
// gradient beyond what they need.
func TestBackwardStepInTwoPasses(t *testing.T) {
	run := func(c optim.WindowConfig, inside bool, o ...snug.Option) (bits []uint32, results []optim.Result, gradients int64) {
		d, err := snug.Open("cpu", snug.Config{LimitBytes: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		rng := snug.NewRand(4)
		m := &tiedNet{nn.NewLinear(64, 64, true), nn.NewLinear(64, 64, true), nn.NewDropout(0.2)}
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
			if one := int64(64*64*4 + 512); gradients > one {
				t.Errorf("%s, %s: %d bytes of gradients at the peak, one weight's are %d", name, saver, gradients, one)
			}
		}
	}
}

func TestTwoPassesOfAccumulationAreRefused(t *testing.T) {
	d := must(snug.Open("cpu", snug.Config{LimitBytes: 64 << 20}))
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
