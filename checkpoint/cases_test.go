package checkpoint_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

func regression(s *snug.Scope, step int) (x, y *snug.Tensor) {
	return snug.Upload(s, waves(8*24, step), 8, 24), snug.Upload(s, waves(8*24, step+1), 8, 24)
}

// The case "Checkpointing with dropout": 16 blocks in 1, 2, 4, 8 and 16 segments. The
// random position, the loss and all gradients after each of 5 steps, and at the end
// parameters and moments are the plain run's to the bit.
func TestCaseDropout(t *testing.T) {
	blocks := func() (l nn.Sequential) {
		for range 16 {
			l = append(l, nn.Sequential{nn.NewLinear(24, 24, true), nn.NewDropout(0.5), nn.Tanh})
		}
		return l
	}
	bits := func(m nn.Layer) (b []uint64) {
		r := newTrained(t, testdevice.Name, m, regression)
		r.loss = nn.MSE
		for i := range 5 {
			if err := r.train(i, &b); err != nil {
				t.Fatal(err)
			}
			b = append(b, r.rng.Position())
		}
		return r.state(t, b)
	}
	plain := bits(blocks())
	for _, segments := range []int{1, 2, 4, 8, 16} {
		if n := differ(plain, bits(checkpoint.NewSequential(blocks(), segments))); n != 0 {
			t.Errorf("%d segments: %d of %d values differ", segments, n, len(plain))
		}
	}
}

// The second run is in the mode of the first: with a block's own options, too, which say that
// there is no dropout, or that products are of bfloat16.
func TestModeIsReplayed(t *testing.T) {
	for name, o := range map[string]snug.Option{"eval": snug.Eval(), "autocast": amp.Autocast(snug.BFloat16), "eval, no recipes": snug.Options(snug.Eval(), snug.NoRecipes())} {
		block := func(x *snug.Tensor) *snug.Tensor {
			s := x.Scope()
			w := snug.Full(s, 1.001, snug.Float32, 40, 40)
			return x.Reshape(1, 40).Dropout(0.5).MatMul(w).Cast(snug.Float32).Tanh()
		}
		around := func(here ...snug.Option) []float64 {
			return gradient(t, func(x *snug.Tensor) *snug.Tensor {
				return snug.Block(block, x, append(here, o)...).Reshape(40).Dropout(0.5)
			}, checkpoint.Every(2)) // the outer one is not
		}
		if want, got := around(), around(checkpoint.Here()); !slices.Equal(want, got) {
			t.Errorf("%s: gradient %v, want %v", name, got, want)
		}
	}
}

// The case "Checkpointing with batch norm": statistics move once a step, and not at all in
// one that fails, in the first run or the second.
func TestCaseBatchNorm(t *testing.T) {
	bn := nn.NewBatchNorm(1)
	runs, failAt := 0, 0
	m := checkpoint.NewSequential([]nn.Layer{bn, nn.Func(func(x *snug.Tensor) *snug.Tensor {
		if runs++; runs == failAt {
			x.Scope().Fail("test", errors.New("on purpose"))
		}
		return x.Sigmoid()
	})}, 1)
	r := newTrained(t, testdevice.Name, &struct{ *checkpoint.Sequential }{m}, func(s *snug.Scope, _ int) (x, y *snug.Tensor) {
		return snug.Upload(s, []float32{0, 1, 2, 1}, 4, 1), snug.Zeros(s, snug.Float32, 4, 1)
	})
	r.loss = nn.MSE
	check := func(mean float64, count int64) {
		t.Helper()
		m, err := snug.GetParam[float64](bn.RunningMean)
		n, err2 := snug.GetParam[int64](bn.NumBatchesTracked)
		if err != nil || err2 != nil || !(math.Abs(m[0]-mean) <= 1e-7) || n[0] != count {
			t.Error(m, n, err, err2)
		}
	}
	for i := range 3 {
		if err := r.train(i, nil); err != nil {
			t.Fatal(err)
		}
	}
	if check(0.271, 3); runs != 6 {
		t.Errorf("%d runs", runs)
	}
	for _, failAt = range []int{runs + 1, runs + 3} { // in the first run; then in a second one
		if err := r.train(3, nil); err == nil {
			t.Error("no failure")
		}
		if err := r.window.Drop(); err != nil {
			t.Fatal(err)
		}
		check(0.271, 3)
	}
}

// The case "Frozen first layer under checkpointing", where the first segment's argument
// wants no gradient, whether it has more than the frozen layer or not.
func TestCaseFrozenFirstLayer(t *testing.T) {
	layers := func() nn.Sequential {
		l := nn.Sequential{nn.NewLinear(24, 24, true), nn.NewBatchNorm(24), nn.Tanh, nn.NewLinear(24, 24, true), nn.Tanh, nn.NewLinear(24, 24, true)}
		nn.Freeze(l[:1])
		return l
	}
	bits := func(m nn.Layer, o ...snug.Option) []uint64 {
		r := newTrained(t, testdevice.Name, m, regression, o...)
		r.loss = nn.MSE
		b, _ := r.run(t, 3)
		return b
	}
	plain := bits(layers())
	for _, segments := range []int{1, 2, 3, 6} {
		for _, o := range [][]snug.Option{nil, {checkpoint.Products()}} {
			if n := differ(plain, bits(checkpoint.NewSequential(layers(), segments), o...)); n != 0 {
				t.Errorf("%d segments: %d of %d values differ", segments, n, len(plain))
			}
		}
	}
}

// Two passes over the same blocks, as clipping inside backward takes.
func TestBackwardStepRunsTwice(t *testing.T) {
	bits := func(o ...snug.Option) []uint64 {
		r := newTrained(t, testdevice.Name, newGPT(0.2), tokens(4), o...)
		r.window = optim.NewWindow(r.opt, optim.WindowConfig{ClipNorm: 0.1, TwoPass: true})
		r.step = func(w *optim.Window, loss *snug.Tensor) error {
			_, err := w.BackwardStep(loss, 1)
			return err
		}
		b, _ := r.run(t, 3)
		return b
	}
	plain := bits()
	for _, o := range [][]snug.Option{{checkpoint.Every(1)}, {checkpoint.Every(1), checkpoint.Products()}} {
		if n := differ(plain, bits(o...)); n != 0 {
			t.Errorf("%d of %d values differ", n, len(plain))
		}
	}
}
