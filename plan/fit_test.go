package plan_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
	"github.com/snug-ml/snug/plan"
)

func open(t testing.TB, name string, limit int64) *snug.Device {
	t.Helper()
	d, err := snug.Open(name, snug.Config{LimitBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// sized is a model whose step takes exactly fixed units and perSample for each sample, at
// the moment of its peak: when the gradient of W has flowed and is about to be added.
type sized struct {
	W         *snug.Param // with gradient, two moments and the flowing gradient five times
	perSample int         // bytes
}

const block = 512 // the allocator's

func newSized(t testing.TB, d *snug.Device, fixed, perSample int) (*sized, optim.Optimizer) {
	t.Helper()
	const small = 5 // blocks: the loss, the gradient of the loss, and three that the operation pads with
	if (fixed-small*block)%(5*block) != 0 {
		t.Fatalf("%d bytes less %d blocks are not five equal parts", fixed, small)
	}
	m := &sized{snug.NewParam(nil, (fixed-small*block)/5/4), perSample}
	if err := nn.Init(t.Context(), d, m, nil); err != nil {
		t.Fatal(err)
	}
	o, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())
	if err != nil {
		t.Fatal(err)
	}
	return m, o
}

func (m *sized) loss(s *snug.Scope, micro int) *snug.Tensor {
	return snug.Apply(&snug.Op{
		Name:  "sized",
		Shape: func(...[]int) ([]int, error) { return []int{1}, nil },
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			c.Save("activations", c.New(snug.Uint8, []int{micro, m.perSample}))
			for i := range 3 {
				c.Save(fmt.Sprint("pad", i), c.New(snug.Uint8, []int{1}))
			}
			return c.New(snug.Float32, []int{1})
		},
		Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			return []*snug.Tensor{c.Run("copy", c.Shape(0), nil, m.W.In(c.Scope()))}
		},
	}, m.W.In(s))
}

// The case "Batch-size finder", on a device without values and on one with; what the one
// predicts the other needs, whatever was tried.
func TestFitCase(t *testing.T) {
	const unit = 1 << 20
	var predicted []plan.Trial
	for _, device := range []string{testdevice.Dry, testdevice.Name} {
		if device == testdevice.Name && testing.Short() {
			continue // it takes 1 GiB
		}
		d := open(t, device, 4<<30)
		m, o := newSized(t, d, 300*unit, 7*unit)
		var tried []plan.Trial
		for _, c := range []struct{ samples, want int }{{1000, 103}, {100, 100}} {
			p, err := plan.Fit(t.Context(), d, 1<<30, plan.Job{Optimizer: o, Batch: c.samples, Loss: m.loss})
			if err != nil {
				t.Fatal(err)
			}
			if p.Micro != c.want {
				t.Errorf("%s: %d of %d samples, want %d", device, p.Micro, c.samples, c.want)
			}
			if c.samples == 1000 && p.Peak != 1021*unit {
				t.Errorf("%s: peak %d, want 1,021 MiB", device, p.Peak)
			}
			if p.Reserved > 1<<30 || len(p.Trials) > 12 || d.Memory().Limit() != 4<<30 || o.Steps() != 0 {
				t.Error(device, p.Reserved, len(p.Trials), d.Memory().Limit(), o.Steps())
			}
			for _, trial := range p.Trials {
				if fits := trial.OutOfMemory == nil; fits != (trial.Micro <= c.want) {
					t.Errorf("%s: %d samples fit: %v", device, trial.Micro, fits)
				} else if fits && c.samples == 1000 && trial.Peak != int64(300+7*trial.Micro)*unit {
					t.Errorf("%s: %d samples: peak %d", device, trial.Micro, trial.Peak)
				}
			}
			tried = append(tried, p.Trials...)
		}
		if predicted == nil {
			predicted = tried
		}
		same(t, predicted, tried)
	}
}

// same compares trials: sizes, peaks, and why one did not fit.
func same(t *testing.T, a, b []plan.Trial) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d trials, want %d", len(b), len(a))
	}
	for i := range a {
		x, y := a[i], b[i]
		if (x.OutOfMemory == nil) != (y.OutOfMemory == nil) || x.OutOfMemory != nil && x.OutOfMemory.Requested != y.OutOfMemory.Requested {
			t.Errorf("trial %d: %v, want %v", i, y.OutOfMemory, x.OutOfMemory)
		}
		if x.OutOfMemory, y.OutOfMemory = nil, nil; x != y {
			t.Errorf("trial %d: %+v, want %+v", i, y, x)
		}
	}
}

// net is a model with all that has a state: batch norm, dropout, a running mean.
type net struct {
	Conv *nn.Conv2D
	BN   *nn.BatchNorm
	FC   *nn.Linear
	Loss *nn.Mean
}

type run struct {
	d     *snug.Device
	m     *net
	o     optim.Optimizer
	rng   *snug.Rand
	calls int
}

func newRun(t testing.TB, device string) *run {
	t.Helper()
	r := &run{d: open(t, device, 1<<30), rng: snug.NewRand(3)}
	r.m = &net{nn.NewConv2D(nn.DefaultConv2D(3, 8, 1)), nn.NewBatchNorm(8), nn.NewLinear(8*16*16, 10, true), nn.NewMean()}
	if err := nn.Init(t.Context(), r.d, r.m, r.rng); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.o, err = optim.NewAdamW(nn.Params(r.m), optim.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *run) loss(s *snug.Scope, micro int) *snug.Tensor {
	r.calls++
	x := make([]float32, micro*3*16*16)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	y := make([]int, micro)
	h := r.m.BN.ForwardReLU(r.m.Conv.Forward(snug.Upload(s, x, micro, 3, 16, 16))).Dropout(0.3)
	loss := nn.CrossEntropy(r.m.FC.Forward(h.Flatten(1)), snug.Upload(s, y, micro))
	r.m.Loss.Add(loss, float64(micro))
	return loss
}

func (r *run) job(batch int) plan.Job {
	return plan.Job{Optimizer: r.o, Batch: batch, Loss: r.loss, Options: []snug.Option{snug.Random(r.rng)}}
}

// train takes a real step.
func (r *run) train(t testing.TB) {
	t.Helper()
	w := optim.NewWindow(r.o, optim.WindowConfig{})
	if err := r.d.Train(t.Context(), func(s *snug.Scope) error { return w.Backward(r.loss(s, 4), 4) }, snug.Random(r.rng)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Step(); err != nil {
		t.Fatal(err)
	}
}

// state is every bit that training leaves behind.
func (r *run) state(t testing.TB) []uint64 {
	t.Helper()
	out := []uint64{r.rng.Position(), uint64(r.o.Steps())}
	for _, seq := range []func(func(string, *snug.Param) bool){nn.Params(r.m), r.o.State()} {
		for _, p := range seq {
			v, err := snug.GetParam[float64](p)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range v {
				out = append(out, math.Float64bits(x))
			}
			if p.HasGrad() {
				t.Errorf("%s has a gradient", p.Name())
			}
		}
	}
	return out
}

func TestFitLeavesNothingBehind(t *testing.T) {
	r := newRun(t, testdevice.Name)
	r.train(t) // moments, statistics and positions that are not zero
	before, bytes := r.state(t), r.d.Memory().Stats().Allocated
	p, err := plan.Fit(t.Context(), r.d, 4<<20, r.job(256))
	if err != nil {
		t.Fatal(err)
	}
	if p.Micro < 2 || p.Micro > 255 || r.calls < 8 {
		t.Errorf("%d samples in %d calls: nothing was searched", p.Micro, r.calls)
	}
	if !slices.Equal(r.state(t), before) {
		t.Error("the search changed something")
	}
	if s := r.d.Memory().Stats(); s.Allocated != bytes {
		t.Errorf("%d bytes allocated, %d before", s.Allocated, bytes)
	}

	// Training goes on as if there had been no search.
	other := newRun(t, testdevice.Name)
	other.train(t)
	other.train(t)
	r.train(t)
	if !slices.Equal(r.state(t), other.state(t)) {
		t.Error("the step after the search differs")
	}
}

// Whatever allocation fails, and where Loss fails or panics, all is as it was.
func TestTryUndoes(t *testing.T) {
	r := newRun(t, testdevice.Name)
	r.train(t)
	before, bytes := r.state(t), r.d.Memory().Stats().Allocated
	check := func(what string) {
		t.Helper()
		if !slices.Equal(r.state(t), before) || r.d.Memory().Stats().Allocated != bytes {
			t.Fatalf("%s changed something", what)
		}
	}
	n, every := 0, 1
	if testing.Short() {
		every = 9
	}
	for ; ; n += every {
		r.d.Memory().FailAt(n)
		_, err := plan.Try(t.Context(), r.d, r.job(10), 4)
		r.d.Memory().FailAt(-1)
		check(fmt.Sprintf("a failure of allocation %d", n))
		if err == nil {
			break
		}
		if !errors.Is(err, memory.ErrOutOfMemory) {
			t.Fatal(err)
		}
	}
	if n < 60 {
		t.Errorf("%d allocations in three micro-batches", n)
	}

	j, calls := r.job(10), 0
	j.Loss = func(s *snug.Scope, micro int) *snug.Tensor {
		if calls++; calls == 3 {
			s.Fail("loss", errors.ErrUnsupported)
		}
		return r.loss(s, micro)
	}
	if _, err := plan.Try(t.Context(), r.d, j, 4); !errors.Is(err, errors.ErrUnsupported) || errors.Is(err, memory.ErrOutOfMemory) {
		t.Error(err)
	}
	check("a failing loss")
	j.Loss = func(s *snug.Scope, micro int) *snug.Tensor {
		if calls++; calls >= 3 {
			panic("loss")
		}
		return r.loss(s, micro)
	}
	for _, try := range []func(){
		func() { calls = 0; plan.Try(t.Context(), r.d, j, 4) },
		func() { calls = 2; plan.Fit(t.Context(), r.d, 8<<20, j) },
	} {
		func() {
			defer func() {
				if recover() != "loss" {
					t.Error("no panic")
				}
			}()
			try()
		}()
	}
	check("a panic")
	if r.d.Memory().Limit() != 1<<30 {
		t.Error(r.d.Memory().Limit())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := plan.Fit(ctx, r.d, 8<<20, r.job(8)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	check("a cancelled search")
}

// A dry run predicts every trial of a search, and any single one, to the byte.
func TestPrediction(t *testing.T) {
	dry, real := newRun(t, testdevice.Dry), newRun(t, testdevice.Name)
	for _, budget := range []int64{4 << 20, 1 << 30} {
		a, err := plan.Fit(t.Context(), dry.d, budget, dry.job(256))
		if err != nil {
			t.Fatal(err)
		}
		b, err := plan.Fit(t.Context(), real.d, budget, real.job(256))
		if err != nil {
			t.Fatal(err)
		}
		same(t, a.Trials, b.Trials)
	}
	for _, micro := range []int{1, 3, 16, 33} {
		a, err := plan.Try(t.Context(), dry.d, dry.job(64), micro)
		if err != nil {
			t.Fatal(err)
		}
		b, err := plan.Try(t.Context(), real.d, real.job(64), micro)
		if err != nil {
			t.Fatal(err)
		}
		same(t, []plan.Trial{a}, []plan.Trial{b})
	}
}

func TestFitRefuses(t *testing.T) {
	r := newRun(t, testdevice.Name)
	_, err := plan.Fit(t.Context(), r.d, 128<<10, r.job(64))
	if !errors.Is(err, memory.ErrOutOfMemory) || !strings.Contains(err.Error(), "are reserved before the step, 128.0 KiB is the budget") {
		t.Error(err)
	}
	j := r.job(64)
	j.Loss = func(s *snug.Scope, micro int) *snug.Tensor {
		snug.Zeros(s, snug.Uint8, micro, 3<<20)
		return r.loss(s, micro)
	}
	_, err = plan.Fit(t.Context(), r.d, 3<<20, j)
	var oom *memory.OutOfMemoryError
	if !errors.As(err, &oom) || !strings.Contains(err.Error(), "micro-batches of 1 samples of 64") || !strings.Contains(oom.Report(), "3.0 MiB for activations") {
		t.Error(err)
	}
	if r.d.Memory().Limit() != 1<<30 {
		t.Error(r.d.Memory().Limit())
	}
	if _, err := plan.Fit(t.Context(), r.d, 0, r.job(64)); err == nil {
		t.Error("a budget of 0")
	}
	if _, err := plan.Fit(t.Context(), r.d, 1<<20, r.job(0)); err == nil {
		t.Error("a batch of 0")
	}
	j = r.job(8)
	j.Loss = nil
	if _, err := plan.Fit(t.Context(), r.d, 1<<30, j); err == nil {
		t.Error("no loss")
	}
	for _, micro := range []int{0, 9} {
		if _, err := plan.Try(t.Context(), r.d, r.job(8), micro); err == nil {
			t.Error("micro-batches of", micro)
		}
	}
	j = r.job(8)
	j.Optimizer = struct{ optim.Optimizer }{r.o} // its number of steps is out of reach
	if _, err := plan.Fit(t.Context(), r.d, 1<<30, j); err == nil || !strings.Contains(err.Error(), "cannot be put back") {
		t.Error(err)
	}
	w := optim.NewWindow(r.o, optim.WindowConfig{})
	if err := r.d.Train(t.Context(), func(s *snug.Scope) error { return w.Backward(r.loss(s, 4), 4) }, snug.Random(r.rng)); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Fit(t.Context(), r.d, 1<<30, r.job(8)); !errors.Is(err, snug.ErrInUse) {
		t.Error(err)
	}
}
