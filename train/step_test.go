package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
	"github.com/snug-ml/snug/train"
)

// net has all that a step changes: parameters, batch norm, dropout, a mean.
type net struct {
	FC1  *nn.Linear
	BN   *nn.BatchNorm
	FC2  *nn.Linear
	Loss *nn.Mean
}

const width = 24

// run is a model that trains, and what a test wants to do in its loss.
type run struct {
	d    *snug.Device
	m    *net
	o    optim.Optimizer
	rng  *snug.Rand
	t    *train.Trainer
	hook func(s *snug.Scope, b data.Batch)
}

func newRun(t testing.TB, device string, c optim.WindowConfig) *run {
	t.Helper()
	d, err := snug.Open(device, snug.Config{LimitBytes: 1 << 28})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r := &run{d: d, rng: snug.NewRand(5), m: &net{nn.NewLinear(width, 32, true), nn.NewBatchNorm(32), nn.NewLinear(32, 4, true), nn.NewMean()}}
	if err := nn.Init(t.Context(), d, r.m, r.rng); err != nil {
		t.Fatal(err)
	}
	if r.o, err = optim.NewAdamW(nn.Params(r.m), optim.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	r.t = &train.Trainer{Device: d, Window: optim.NewWindow(r.o, c), Loss: r.loss, Options: []snug.Option{snug.Random(r.rng)}}
	return r
}

func (r *run) forward(x *snug.Tensor) *snug.Tensor {
	h := r.m.BN.ForwardReLU(r.m.FC1.Forward(x))
	if x.Scope().Training() {
		h = h.Dropout(0.4)
	}
	return r.m.FC2.Forward(h)
}

func (r *run) loss(s *snug.Scope, b data.Batch) (*snug.Tensor, float64) {
	if r.hook != nil {
		r.hook(s, b)
	}
	x, y := b.In(s)
	loss := nn.CrossEntropy(r.forward(x), y)
	r.m.Loss.Add(loss, float64(b.Len()))
	return loss, float64(b.Len())
}

func dataset(t testing.TB, n int) data.Dataset {
	t.Helper()
	x, y := make([]float32, n*width), make([]int64, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i % 1009)))
	}
	for i := range y {
		y[i] = int64(i * 7 % 4)
	}
	ds, err := data.Slices(x, y, data.Spec{Shape: []int{width}, Classes: 4})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func loader(t testing.TB, n int) *data.Loader {
	t.Helper()
	l, err := data.NewLoader(dataset(t, n), data.LoaderConfig{Seed: 1, Shuffle: true, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func batch(t testing.TB, n int) data.Batch {
	t.Helper()
	for b, err := range loader(t, n).Batches(t.Context(), n) {
		if err != nil {
			t.Fatal(err)
		}
		return b.Clone()
	}
	panic("no batch")
}

func (r *run) step(t testing.TB, b data.Batch) train.Result {
	t.Helper()
	res, err := r.t.Step(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// state is every bit that steps change; no gradient may be left.
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

func equal(t testing.TB, what string, got, want []uint64) {
	t.Helper()
	n := 0
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			n++
		}
	}
	if n > 0 || len(got) != len(want) {
		t.Errorf("%s: %d of %d values differ", what, n, len(want))
	}
}

var clipped = optim.WindowConfig{ClipNorm: 0.5, Schedule: optim.Warmup(3, func(int64) float64 { return 1 })}

// A step is a window of micro-batches, and its numbers are the window's.
func TestStep(t *testing.T) {
	a, b := newRun(t, testdevice.Name, clipped), newRun(t, testdevice.Name, clipped)
	samples := batch(t, 10)
	a.t.Micro = 4
	got := a.step(t, samples)
	var sum float64
	for part := range samples.Split(4) {
		if err := b.d.Train(t.Context(), func(s *snug.Scope) error {
			loss, n := b.loss(s, part)
			v, err := loss.Item()
			if sum += v * n; err != nil {
				return err
			}
			return b.t.Window.Backward(loss, n)
		}, snug.Random(b.rng)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := b.t.Window.Step()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a step", a.state(t), b.state(t))
	if got.Result != want || got.Loss != sum/10 || got.Micro != 4 || got.Retried != nil || !(got.Norm > 0.5) || a.t.Micro != 4 {
		t.Errorf("%+v, want %+v with loss %v", got, want, sum/10)
	}
	if got := a.step(t, batch(t, 3)); got.Micro != 3 || a.t.Micro != 4 { // a smaller last batch teaches nothing
		t.Error(got.Micro, a.t.Micro)
	}
	if a.t.Micro = 0; a.step(t, samples).Micro != 10 {
		t.Error("not the whole batch at once")
	}
	if _, err := a.t.Step(t.Context(), data.Batch{}); err == nil {
		t.Error("a batch of no samples")
	}
}

// Whatever allocation of a step fails, the step has the bits of one of half the size.
func TestAnyAllocationMayFail(t *testing.T) {
	for name, c := range map[string]optim.WindowConfig{
		"clipped": clipped,
		"scaled":  {Scaler: amp.NewScaler(amp.ScalerConfig{Start: 1024, Growth: 2, Backoff: 0.5, Interval: 1 << 30})},
	} {
		samples := batch(t, 8)
		want := map[int][]uint64{}
		for _, micro := range []int{2, 4} {
			r := newRun(t, testdevice.Name, c)
			r.t.Micro = micro
			r.step(t, samples)
			r.step(t, samples)
			want[micro] = r.state(t)
		}
		if slices.Equal(want[2], want[4]) {
			t.Fatal("the size makes no difference: nothing is tested")
		}
		n, every := 0, 1
		if testing.Short() {
			every = 9
		}
		for ; ; n += every {
			r := newRun(t, testdevice.Name, c)
			r.t.Micro = 4
			live := r.d.Memory().Stats().Allocated
			r.d.Memory().FailAt(n)
			res := r.step(t, samples)
			r.d.Memory().FailAt(-1)
			if got := r.d.Memory().Stats().Allocated; got != live {
				t.Fatalf("%s: allocation %d: %d bytes live, %d before", name, n, got, live)
			}
			r.step(t, samples) // in the same size
			if res.Retried == nil {
				equal(t, name+": no failure", r.state(t), want[4])
				break
			}
			if len(res.Retried) != 1 || res.Micro != 2 || r.t.Micro != 2 || !errors.Is(res.Retried[0], memory.ErrOutOfMemory) {
				t.Fatalf("%s: allocation %d: %+v", name, n, res)
			}
			equal(t, fmt.Sprintf("%s: allocation %d", name, n), r.state(t), want[2])
		}
		if n < 50 {
			t.Errorf("%s: %d allocations in a step of two micro-batches", name, n)
		}
	}
}

// take allocates bytes, which nothing writes.
func take(s *snug.Scope, bytes int) {
	snug.Apply(&snug.Op{
		Name:    "take",
		Shape:   func(...[]int) ([]int, error) { return []int{bytes}, nil },
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor { return c.New(snug.Uint8, []int{bytes}) },
	}, snug.Zeros(s, snug.Uint8, 1))
}

// hungry passes x through, and takes bytes for each sample while its gradient passes.
func hungry(x *snug.Tensor, bytes int) *snug.Tensor {
	return snug.Apply(&snug.Op{
		Name:    "hungry",
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor { return c.Run("copy", in[0].Shape(), nil, in[0]) },
		Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			c.New(snug.Uint8, []int{dy.Dim(0), bytes})
			return []*snug.Tensor{dy}
		},
	}, x)
}

// The case "Out of memory in backward leaves nothing behind".
func TestOutOfMemoryInBackward(t *testing.T) {
	times := 100
	if testing.Short() {
		times = 10
	}
	eager := func(r *run) {
		r.t.Loss = func(s *snug.Scope, b data.Batch) (*snug.Tensor, float64) {
			x, y := b.In(s)
			return nn.CrossEntropy(hungry(r.forward(x), 1<<20), y), float64(b.Len())
		}
	}
	samples := batch(t, 16)
	a, b := newRun(t, testdevice.Name, optim.WindowConfig{}), newRun(t, testdevice.Name, optim.WindowConfig{})
	eager(a)
	eager(b)
	a.d.Memory().SetLimit(14 << 20) // 8 samples take 8 MiB in backward, 16 would 16
	live := a.d.Memory().Stats().Allocated
	var kept []error
	for i := range times {
		a.t.Micro, b.t.Micro = 0, 8
		res := a.step(t, samples)
		kept = append(kept, res.Retried...)
		var oom *memory.OutOfMemoryError
		var op *snug.OpError
		if len(res.Retried) != 1 || res.Micro != 8 || !errors.As(res.Retried[0], &oom) || !errors.As(res.Retried[0], &op) || op.Op != "hungry backward" {
			t.Fatalf("%d: %+v", i, res)
		}
		if s := a.d.Memory().Stats(); s.Allocated != live || s.OutOfMemory != int64(i+1) {
			t.Fatalf("%d: %d bytes live, %d before; %d errors", i, s.Allocated, live, s.OutOfMemory)
		}
		if b.step(t, samples).Retried != nil {
			t.Fatal("the other run is to have room")
		}
	}
	if len(kept) != times {
		t.Error(len(kept))
	}
	equal(t, "100 failures", a.state(t), b.state(t))
}

// Down to one sample, and no further.
func TestOneSampleDoesNotFit(t *testing.T) {
	r := newRun(t, testdevice.Name, optim.WindowConfig{})
	want, live := r.state(t), r.d.Memory().Stats().Allocated
	sizes := []int{}
	r.hook = func(s *snug.Scope, b data.Batch) {
		sizes = append(sizes, b.Len())
		take(s, 1<<29)
	}
	res, err := r.t.Step(t.Context(), batch(t, 13))
	var oom *memory.OutOfMemoryError
	if !errors.As(err, &oom) || !strings.Contains(oom.Report(), "512.0 MiB for activations") || !strings.HasPrefix(err.Error(), "a micro-batch of one sample: train: ") {
		t.Fatal(err)
	}
	if !slices.Equal(sizes, []int{13, 7, 4, 2, 1}) || len(res.Retried) != 4 || res.Micro != 1 || r.t.Micro != 0 {
		t.Error(sizes, res, r.t.Micro)
	}
	equal(t, "a step that cannot be", r.state(t), want)
	if got := r.d.Memory().Stats().Allocated; got != live {
		t.Error(got, live)
	}
}

// A step that fails for another reason, late, is undone too, and not tried again.
func TestStepUndoes(t *testing.T) {
	r, plain := newRun(t, testdevice.Name, optim.WindowConfig{}), newRun(t, testdevice.Name, optim.WindowConfig{})
	samples := batch(t, 12)
	r.t.Micro, plain.t.Micro = 4, 4
	want := r.state(t)
	calls := 0
	for name, fail := range map[string]func(*snug.Scope){
		"error":  func(s *snug.Scope) { s.Fail("test", errors.ErrUnsupported) },
		"panic":  func(*snug.Scope) { panic("test") },
		"cancel": nil,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		calls = 0
		r.hook = func(s *snug.Scope, b data.Batch) {
			if calls++; calls < 3 {
				return
			}
			if fail == nil {
				cancel()
			} else {
				fail(s)
			}
		}
		var err error
		panicked := func() (v any) {
			defer func() { v = recover() }()
			_, err = r.t.Step(ctx, samples)
			return nil
		}()
		cancel()
		if calls != 3 || (panicked != nil) != (name == "panic") || name == "error" && !errors.Is(err, errors.ErrUnsupported) || name == "cancel" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %v after %d calls", name, err, panicked, calls)
		}
		equal(t, name, r.state(t), want)
	}
	r.hook = nil
	r.step(t, samples)
	plain.step(t, samples)
	equal(t, "the step after it", r.state(t), plain.state(t))
}

// moody is an optimizer that refuses its first steps.
type moody struct {
	optim.Optimizer
	refuse []error
}

func (o *moody) Step() error {
	if len(o.refuse) > 0 {
		err := o.refuse[0]
		o.refuse = o.refuse[1:]
		return err
	}
	return o.Optimizer.Step()
}

// What the optimizer's step meets is met like the rest: after out of memory again with
// half, else the step has not taken place.
func TestOptimizerRefuses(t *testing.T) {
	r, plain := newRun(t, testdevice.Name, optim.WindowConfig{}), newRun(t, testdevice.Name, optim.WindowConfig{})
	o := &moody{Optimizer: r.o, refuse: []error{errors.ErrUnsupported}}
	r.t.Window = optim.NewWindow(o, optim.WindowConfig{})
	samples, want := batch(t, 8), r.state(t)
	if _, err := r.t.Step(t.Context(), samples); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	equal(t, "a step refused", r.state(t), want)
	o.refuse = []error{memory.ErrOutOfMemory, memory.ErrOutOfMemory}
	if res := r.step(t, samples); res.Micro != 2 || len(res.Retried) != 2 || !res.Stepped {
		t.Errorf("%+v", res)
	}
	plain.t.Micro = 2
	plain.step(t, samples)
	equal(t, "the step after that", r.state(t), plain.state(t))
}

// Torn parameters cannot be put back: no retry, no undoing.
func TestTornIsNotRetried(t *testing.T) {
	r := newRun(t, testdevice.Name, optim.WindowConfig{})
	calls := 0
	r.hook = func(s *snug.Scope, b data.Batch) {
		calls++
		s.Fail("test", errors.Join(snug.ErrTorn, memory.ErrOutOfMemory))
	}
	_, err := r.t.Step(t.Context(), batch(t, 8))
	if !errors.Is(err, snug.ErrTorn) || calls != 1 {
		t.Error(err, calls)
	}
}

// Where the window cannot be dropped, because a gradient's owner is in use, nothing runs
// again on top of it.
func TestNoRetryOnAWindowThatIsLeft(t *testing.T) {
	r := newRun(t, testdevice.Name, optim.WindowConfig{})
	calls := 0
	if err := r.d.Infer(t.Context(), func(s *snug.Scope) error {
		r.m.FC1.Weight.In(s)
		r.hook = func(s *snug.Scope, b data.Batch) {
			calls++
			s.Fail("test", memory.ErrOutOfMemory)
		}
		_, err := r.t.Step(t.Context(), batch(t, 8))
		if !errors.Is(err, snug.ErrInUse) || !errors.Is(err, memory.ErrOutOfMemory) {
			t.Error(err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if calls != 1 {
		t.Error(calls)
	}
}

// All labels masked: nothing to learn, no NaN.
func TestNothingToLearn(t *testing.T) {
	r := newRun(t, testdevice.Name, optim.WindowConfig{})
	r.t.Loss = func(s *snug.Scope, b data.Batch) (*snug.Tensor, float64) {
		return r.m.FC1.Weight.In(s).Sum().MulScalar(math.Inf(1)), 0
	}
	r.t.Options = nil
	want := r.state(t)
	res := r.step(t, batch(t, 4))
	if res.Stepped || res.Count != 0 || !math.IsNaN(res.Loss) {
		t.Error(res)
	}
	equal(t, "an empty window", r.state(t), want)
}

// On a dry device a step has the same memory and no loss.
func TestDryStep(t *testing.T) {
	dry, real := newRun(t, testdevice.Dry, clipped), newRun(t, testdevice.Name, clipped)
	dry.t.Micro, real.t.Micro = 3, 3
	res := dry.step(t, batch(t, 8))
	real.step(t, batch(t, 8))
	if !math.IsNaN(res.Loss) || !res.Stepped {
		t.Error(res)
	}
	if a, b := dry.d.Memory().Stats(), real.d.Memory().Stats(); a.Peak != b.Peak || a.Usage != b.Usage {
		t.Error(a.Peak, b.Peak)
	}
}
