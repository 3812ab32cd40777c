package train_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
	"github.com/snug-ml/snug/train"
)

// The case "The last window": d loss/dw = 1, SGD of rate 1.
func TestLastWindow(t *testing.T) {
	for _, c := range []struct {
		samples int
		want    float64
		steps   int64
	}{{10, -3, 3}, {3, -1, 1}} {
		r := newRun(t, testdevice.Name, optim.WindowConfig{})
		m := &struct{ W *snug.Param }{snug.NewParam(nil, 1)}
		if err := nn.Init(t.Context(), r.d, m, nil); err != nil {
			t.Fatal(err)
		}
		o, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1})
		if err != nil {
			t.Fatal(err)
		}
		var scheduled []int64
		w := optim.NewWindow(o, optim.WindowConfig{Schedule: func(step int64) float64 { scheduled = append(scheduled, step); return 1 }})
		micros, ended := 0, false
		l := train.Loop{
			Trainer: &train.Trainer{Device: r.d, Window: w, Micro: 1, Loss: func(s *snug.Scope, b data.Batch) (*snug.Tensor, float64) {
				micros++
				return m.W.In(s).Sum(), 1
			}},
			Data: loader(t, c.samples), Batch: 4, Epochs: 1,
			OnEpoch: func(_ context.Context, p train.Progress) error {
				ended = true
				if m.W.HasGrad() || p.Steps != c.steps {
					t.Error("a gradient is left, or", p.Steps)
				}
				return nil
			},
		}
		if err := l.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := snug.GetParam[float64](m.W)
		if err != nil || got[0] != c.want || o.Steps() != c.steps || len(scheduled) != int(c.steps) || micros != c.samples || !ended {
			t.Error(got, err, o.Steps(), scheduled, micros, ended)
		}
	}
}

// What the functions are told, epoch by epoch.
func TestLoop(t *testing.T) {
	r := newRun(t, testdevice.Name, clipped)
	var steps []int64
	var epochs []int64
	var losses, counts []float64
	l := train.Loop{Trainer: r.t, Data: loader(t, 22), Batch: 8, Epochs: 2}
	l.OnStep = func(p train.Progress) error {
		steps = append(steps, p.Epoch, p.Steps)
		losses, counts = append(losses, p.Loss), append(counts, p.Count)
		if p.Micro != int(p.Count) || !(p.SamplesPerSecond > 0) || p.Memory.Allocated == 0 || !(p.Norm > 0) {
			t.Errorf("%+v", p)
		}
		return nil
	}
	l.OnEpoch = func(_ context.Context, p train.Progress) error {
		epochs = append(epochs, p.Epoch)
		var sum float64
		for i, v := range losses {
			sum += v * counts[i]
		}
		if p.MeanLoss != sum/22 || p.Loss != losses[len(losses)-1] {
			t.Error(p.MeanLoss, sum/22)
		}
		losses, counts = nil, nil
		return nil
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(steps, []int64{0, 1, 0, 2, 0, 3, 1, 4, 1, 5, 1, 6}) || !slices.Equal(epochs, []int64{0, 1}) {
		t.Error(steps, epochs)
	}
	if err := l.Run(t.Context()); err != nil || len(steps) != 12 { // nothing is left to do
		t.Error(err, steps)
	}
	l.Epochs = 3
	l.OnStep = func(train.Progress) error { return errors.ErrUnsupported }
	if err := l.Run(t.Context()); !errors.Is(err, errors.ErrUnsupported) || l.Data.State() != (data.LoaderState{Epoch: 2, Sample: 8}) {
		t.Error(err, l.Data.State())
	}
	l.OnStep = nil
	l.OnEpoch = func(context.Context, train.Progress) error { return errors.ErrUnsupported }
	if err := l.Run(t.Context()); !errors.Is(err, errors.ErrUnsupported) || l.Data.State() != (data.LoaderState{Epoch: 3}) {
		t.Error(err, l.Data.State())
	}
}

// Stopped in the middle of any step and run again, a loop gives the bits of one that was
// never stopped.
func TestLoopStopsAndGoesOn(t *testing.T) {
	plain := newRun(t, testdevice.Name, clipped)
	plain.t.Micro = 4
	calls := 0
	plain.hook = func(*snug.Scope, data.Batch) { calls++ }
	if err := (train.Loop{Trainer: plain.t, Data: loader(t, 22), Batch: 8, Epochs: 2}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := plain.state(t)
	if calls != 12 {
		t.Fatal(calls)
	}
	for stop := 1; stop <= calls; stop++ {
		r := newRun(t, testdevice.Name, clipped)
		r.t.Micro = 4
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		r.hook = func(*snug.Scope, data.Batch) {
			if n++; n == stop {
				cancel()
			}
		}
		l := train.Loop{Trainer: r.t, Data: loader(t, 22), Batch: 8, Epochs: 2}
		if err := l.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := l.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "stopped and gone on", r.state(t), want)
	}
}

// A loop on a device that the batch is too large for, with a dataset and its loader.
func TestLoopUnderALimit(t *testing.T) {
	limited, small := newRun(t, testdevice.Name, clipped), newRun(t, testdevice.Name, clipped)
	limited.d.Memory().SetLimit(12 << 20)
	small.t.Micro = 8
	for _, r := range []*run{limited, small} {
		r.hook = func(s *snug.Scope, b data.Batch) { take(s, b.Len()<<20) }
		retries := 0
		if err := (train.Loop{Trainer: r.t, Data: loader(t, 80), Batch: 32, Epochs: 2, OnStep: func(p train.Progress) error {
			retries += len(p.Retried)
			return nil
		}}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.t.Micro != 8 || r == limited && retries != 2 { // 32, 16, and never again
			t.Error(r.t.Micro, retries)
		}
	}
	equal(t, "under a limit", limited.state(t), small.state(t))
}

func (r *run) right(s *snug.Scope, b data.Batch) (*snug.Tensor, float64) {
	if r.hook != nil {
		r.hook(s, b)
	}
	x, y := b.In(s)
	n := float64(b.Len())
	return nn.Correct(r.forward(x), y).MulScalar(1 / n), n
}

func TestEvaluate(t *testing.T) {
	r := newRun(t, testdevice.Name, optim.WindowConfig{})
	l := loader(t, 50)
	var all float64
	if err := r.d.Infer(t.Context(), func(s *snug.Scope) (err error) {
		x, y := batch(t, 50).In(s)
		all, err = nn.Correct(r.forward(x), y).Item()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := r.state(t)
	for i, size := range []int{50, 7, 1} {
		if i == 1 { // the epoch is under way: Evaluate takes all of it
			if err := l.SetState(data.LoaderState{Epoch: 1, Sample: 30}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := train.Evaluate(t.Context(), r.d, l, size, r.right)
		if err != nil || !(math.Abs(got-all/50) <= 1e-6) {
			t.Error(got, err, "want", all/50)
		}
		if l.State() != (data.LoaderState{Epoch: int64(i) + 1}) {
			t.Error(l.State())
		}
	}

	// Too large for the device: each sample still counts once.
	r.d.Memory().SetLimit(12 << 20)
	count := nn.NewMean()
	if err := nn.Init(t.Context(), r.d, count, nil); err != nil {
		t.Fatal(err)
	}
	sizes := []int{}
	r.hook = func(s *snug.Scope, b data.Batch) {
		sizes = append(sizes, b.Len())
		count.Add(snug.Full(s, 1, snug.Float32, 1), float64(b.Len()))
		take(s, b.Len()<<20)
	}
	got, err := train.Evaluate(t.Context(), r.d, l, 40, r.right)
	if err != nil || !(math.Abs(got-all/50) <= 1e-6) {
		t.Error(got, err, "want", all/50)
	}
	if !slices.Equal(sizes, []int{40, 20, 10, 10, 10, 10, 10}) {
		t.Error(sizes)
	}
	if v, err := snug.GetParam[float64](count.Sum); err != nil || v[1] != 50 {
		t.Error(v, err)
	}
	equal(t, "evaluation", r.state(t), want)

	r.hook = func(s *snug.Scope, b data.Batch) { take(s, 13<<20) }
	if got, err := train.Evaluate(t.Context(), r.d, l, 8, r.right); !errors.Is(err, memory.ErrOutOfMemory) || !math.IsNaN(got) {
		t.Error(got, err)
	}
}

func TestFit(t *testing.T) {
	r, other := newRun(t, testdevice.Name, clipped), newRun(t, testdevice.Name, clipped)
	l := loader(t, 100)
	if err := l.SetState(data.LoaderState{Epoch: 3, Sample: 60}); err != nil {
		t.Fatal(err)
	}
	r.hook = func(s *snug.Scope, b data.Batch) { take(s, b.Len()<<20) }
	r.step(t, batch(t, 8))
	other.step(t, batch(t, 8))
	want := r.state(t)
	p, err := r.t.Fit(t.Context(), 24<<20, r.o, l, 64)
	if err != nil {
		t.Fatal(err)
	}
	if r.t.Micro != p.Micro || p.Micro < 8 || p.Micro > 24 || p.Reserved > 24<<20 {
		t.Errorf("%+v", p)
	}
	equal(t, "fit", r.state(t), want)
	if l.State() != (data.LoaderState{Epoch: 3, Sample: 60}) {
		t.Error(l.State())
	}
	r.d.Memory().SetLimit(24 << 20) // what was found holds
	other.t.Micro = p.Micro
	if res := r.step(t, batch(t, 64)); res.Retried != nil || res.Micro != p.Micro {
		t.Errorf("%+v", res)
	}
	other.step(t, batch(t, 64))
	equal(t, "a step after fit", r.state(t), other.state(t))

	// Batch norm refuses one sample, which is not to hide that two are too many.
	r.t.Micro = 5
	if _, err := r.t.Fit(t.Context(), 2<<20, r.o, l, 64); !errors.Is(err, memory.ErrOutOfMemory) || !errors.Is(err, snug.ErrShape) || r.t.Micro != 5 {
		t.Error(err, r.t.Micro)
	}
	r.d.Memory().SetLimit(2 << 20)
	if _, err := r.t.Step(t.Context(), batch(t, 8)); !errors.Is(err, memory.ErrOutOfMemory) || !errors.Is(err, snug.ErrShape) || r.t.Micro != 5 {
		t.Error(err, r.t.Micro)
	}
	if l.State() != (data.LoaderState{Epoch: 3, Sample: 60}) {
		t.Error(l.State())
	}
}
