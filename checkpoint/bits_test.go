package checkpoint_test

import (
	"context"
	"math"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/optim"
)

var bg = context.Background()

// trained is a model in training with AdamW.
type trained struct {
	dev    *snug.Device
	rng    *snug.Rand
	m      nn.Layer
	opt    optim.Optimizer
	window *optim.Window
	data   func(s *snug.Scope, step int) (x, y *snug.Tensor)
	loss   func(y, want *snug.Tensor) *snug.Tensor
	opts   []snug.Option
	step   func(w *optim.Window, loss *snug.Tensor) error // nil: Backward, and Step after the scope
}

func newTrained(t testing.TB, device string, m nn.Layer, data func(*snug.Scope, int) (x, y *snug.Tensor), o ...snug.Option) *trained {
	t.Helper()
	d, err := snug.Open(device, snug.Config{LimitBytes: 4 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r := &trained{dev: d, rng: snug.NewRand(7), m: m, data: data, loss: nn.CrossEntropy}
	if err := nn.Init(bg, d, m, r.rng); err != nil {
		t.Fatal(err)
	}
	if r.opt, err = optim.NewAdamW(nn.Params(m), optim.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	r.window = optim.NewWindow(r.opt, optim.WindowConfig{})
	r.opts = append(o, snug.Random(r.rng))
	return r
}

// train takes a step. bits, if not nil, gathers the loss and the gradients.
func (r *trained) train(step int, bits *[]uint64) error {
	err := r.dev.Train(bg, func(s *snug.Scope) error {
		x, y := r.data(s, step)
		loss := r.loss(r.m.Forward(x), y)
		if r.step != nil {
			return r.step(r.window, loss)
		}
		if err := r.window.Backward(loss, 1); err != nil || bits == nil {
			return err
		}
		if err := add(bits, loss); err != nil {
			return err
		}
		for _, p := range nn.Params(r.m) {
			if g := p.Grad(s); g != nil {
				if err := add(bits, g); err != nil {
					return err
				}
			}
		}
		return nil
	}, r.opts...)
	if err == nil && r.step == nil {
		_, err = r.window.Step()
	}
	return err
}

func add(bits *[]uint64, t *snug.Tensor) error {
	v, err := snug.Download[float64](t)
	for _, f := range v {
		*bits = append(*bits, math.Float64bits(f))
	}
	return err
}

// state is parameters, buffers, the optimizer's state and the random position.
func (r *trained) state(t testing.TB, bits []uint64) []uint64 {
	t.Helper()
	if err := r.dev.Infer(bg, func(s *snug.Scope) error {
		for _, seq := range []func(func(string, *snug.Param) bool){nn.Params(r.m), r.opt.State()} {
			for _, p := range seq {
				if err := add(&bits, p.In(s)); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return append(bits, r.rng.Position())
}

// run takes steps; the outcome has no bits on a device without values.
func (r *trained) run(t testing.TB, steps int) (bits []uint64, m [2]memory.Stats) {
	t.Helper()
	dry := r.dev.Name() != testdevice.Name
	for i := range steps {
		into := &bits
		if dry {
			into = nil
		}
		if err := r.train(i, into); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			r.dev.Memory().ResetPeak() // from a step that finds its optimizer's state
		}
	}
	m = [2]memory.Stats{r.dev.Memory().Stats(), r.dev.Host().Stats()}
	if !dry {
		bits = r.state(t, bits)
	}
	return bits, m
}

func differ(a, b []uint64) (n int) {
	if len(a) != len(b) {
		return max(len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

func waves(n, step int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Sin(float64(i*(2*step+3)) * 0.37))
	}
	return v
}

func newResNet() nn.Layer {
	return models.NewResNet(models.ResNetConfig{Blocks: []int{2, 1}, Width: 8, Channels: 3, Classes: 5, SmallStem: true})
}

func images(n int) func(s *snug.Scope, step int) (x, y *snug.Tensor) {
	return func(s *snug.Scope, step int) (x, y *snug.Tensor) {
		return snug.Upload(s, waves(n*3*8*8, step), n, 3, 8, 8), classes(s, 5, step, n)
	}
}

func newGPT(dropout float64) nn.Layer {
	return models.NewGPT(models.GPTConfig{Vocabulary: 11, Context: 12, Width: 16, Heads: 2, Layers: 2, Dropout: dropout, Tied: true})
}

func tokens(n int) func(s *snug.Scope, step int) (x, y *snug.Tensor) {
	return func(s *snug.Scope, step int) (x, y *snug.Tensor) {
		return classes(s, 11, step, n, 12), classes(s, 11, step+1, n, 12)
	}
}

func classes(s *snug.Scope, of, step int, shape ...int) *snug.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i*(step+3)) % int64(of)
	}
	return snug.Upload(s, v, shape...)
}
