package optim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/golden"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// scalar is a model w whose loss is slope·w: the gradient is slope, whatever w is.
type scalar struct{ W *snug.Param }

func newScalar(t testing.TB, d *snug.Device) *scalar {
	t.Helper()
	m := &scalar{snug.NewParam(snug.Const(0), 1)}
	if err := nn.Init(t.Context(), d, m, nil); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *scalar) loss(s *snug.Scope, slope float64) *snug.Tensor {
	return snug.Upload(s, []float32{float32(slope)}, 1).Mul(m.W).Sum()
}

func window(t testing.TB, m any, c optim.WindowConfig) *optim.Window {
	t.Helper()
	o, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1})
	if err != nil {
		t.Fatal(err)
	}
	return optim.NewWindow(o, c)
}

func feed(t testing.TB, w *optim.Window, m *scalar, slope, count float64) {
	t.Helper()
	if err := m.W.Device().Train(t.Context(), func(s *snug.Scope) error { return w.Backward(m.loss(s, slope), count) }); err != nil {
		t.Fatal(err)
	}
}

func step(t testing.TB, w *optim.Window) optim.Result {
	t.Helper()
	r, err := w.Step()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestUnequalCounts(t *testing.T) {
	d := open(t)
	m := newScalar(t, d)
	scheduled := 0
	w := window(t, m, optim.WindowConfig{Schedule: func(int64) float64 { scheduled++; return 1 }})
	feed(t, w, m, 4, 1) // summed 4 over 1
	feed(t, w, m, 2, 3) // summed 6 over 3
	if r := step(t, w); !r.Stepped || r.Count != 4 || get(t, m.W)[0] != -2.5 {
		t.Error(r, get(t, m.W))
	}
	feed(t, w, m, math.NaN(), 0) // all labels masked
	if r := step(t, w); r.Stepped || get(t, m.W)[0] != -2.5 || scheduled != 1 {
		t.Error(r, get(t, m.W), scheduled)
	}
	if err := d.Train(t.Context(), func(s *snug.Scope) error { // two in one scope
		if err := w.Backward(m.loss(s, 4), 1); err != nil {
			return err
		}
		return w.Backward(m.loss(s, 2), 3)
	}); err != nil {
		t.Fatal(err)
	}
	if r := step(t, w); r.Count != 4 || get(t, m.W)[0] != -5 {
		t.Error(r, get(t, m.W))
	}
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		if err := d.Train(t.Context(), func(s *snug.Scope) error { return w.Backward(m.loss(s, 1), bad) }); err == nil || !strings.Contains(err.Error(), "a number of samples wanted") {
			t.Error(bad, err)
		}
	}
}

// The token counts come from the loss itself, and a window of masked labels is none.
func TestMaskedTokens(t *testing.T) {
	d := open(t)
	l := nn.NewLinear(2, 3, false)
	if err := nn.Init(t.Context(), d, l, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	before := get(t, l.Weight)
	micro := func(w *optim.Window, x []float32, target []int) {
		t.Helper()
		if err := d.Train(t.Context(), func(s *snug.Scope) error {
			loss, n := nn.DefaultCrossEntropy().Loss(l.Forward(snug.Upload(s, x, len(target), 2)), snug.Upload(s, target, len(target)))
			count, err := n.Item()
			if err != nil {
				return err
			}
			return w.Backward(loss, count)
		}); err != nil {
			t.Fatal(err)
		}
	}
	w := window(t, l, optim.WindowConfig{ClipNorm: 1})
	micro(w, []float32{1, 2, 3, 4}, []int{-100, -100})
	if r := step(t, w); r.Stepped || r.Count != 0 || !slices.Equal(get(t, l.Weight), before) {
		t.Error(r)
	}
	micro(w, []float32{1, 2, 3, 4}, []int{-100, 2})
	micro(w, []float32{5, 6}, []int{-100})
	micro(w, []float32{7, 8, 9, 1, 2, 3}, []int{0, 1, 2})
	if r := step(t, w); r.Count != 4 {
		t.Error(r)
	}
	split := get(t, l.Weight)
	if err := snug.SetParam(l.Weight, before); err != nil {
		t.Fatal(err)
	}
	micro(w, []float32{3, 4, 7, 8, 9, 1, 2, 3}, []int{2, 0, 1, 2})
	if step(t, w); !near(split, get(t, l.Weight), 1e-6) || near(split, before, 1e-3) {
		t.Error(split, get(t, l.Weight))
	}
}

func TestLastWindow(t *testing.T) {
	for batches, want := range map[int]float64{10: -3, 3: -1} {
		d := open(t)
		m := newScalar(t, d)
		steps := 0
		w := window(t, m, optim.WindowConfig{Schedule: func(int64) float64 { steps++; return 1 }})
		for i := range batches {
			feed(t, w, m, 1, 1)
			if i%4 == 3 || i == batches-1 {
				step(t, w)
			}
		}
		if got := get(t, m.W)[0]; got != want || steps != int(-want) || m.W.HasGrad() {
			t.Error(got, want, steps, m.W.HasGrad())
		}
	}
}

// scaled is a run of the case "Scaler, accumulation, schedule".
type scaled struct {
	m  *scalar
	sc *amp.Scaler
	w  *optim.Window
	o  optim.Optimizer
}

func newScaled(t *testing.T) *scaled {
	r := &scaled{m: newScalar(t, open(t)), sc: amp.NewScaler(amp.ScalerConfig{Start: 65536, Growth: 2, Backoff: 0.5, Interval: 2})}
	var err error
	if r.o, err = optim.NewAdam(nn.Params(r.m), optim.AdamConfig{LR: 0.5, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}); err != nil {
		t.Fatal(err)
	}
	r.w = optim.NewWindow(r.o, optim.WindowConfig{Scaler: r.sc, ClipNorm: 0.5, Schedule: optim.Exponential(0.5)})
	return r
}

func (r *scaled) window(t *testing.T, overflow bool) optim.Result {
	for k := range 4 {
		slope := 1 + float64(k)/4
		if overflow && k == 1 {
			slope = math.Inf(1)
		}
		feed(t, r.w, r.m, slope, 1)
	}
	return step(t, r.w)
}

func TestScalerAccumulationSchedule(t *testing.T) {
	scales, stepped := []float64{32768, 32768, 65536, 65536, 32768}, []bool{false, true, true, true, false}
	overflow := []bool{true, false, false, false, true}
	a := newScaled(t)
	var saved []byte
	var state [][]float64
	var weight []float64
	var at []float64
	for i := range 5 {
		under := a.sc.Scale()
		r := a.window(t, overflow[i])
		if r.Stepped != stepped[i] || r.Scale != under || a.sc.Scale() != scales[i] || r.Count != 4 || r.Stepped && r.Norm != 1.375 {
			t.Error(i, r, a.sc.Scale())
		}
		at = append(at, get(t, a.m.W)[0])
		if i == 1 {
			var err error
			if saved, err = json.Marshal(a.w); err != nil {
				t.Fatal(err)
			}
			weight = get(t, a.m.W)
			for _, s := range a.w.State() {
				state = append(state, get(t, s))
			}
		}
	}
	if a.o.Steps() != 3 || at[0] != 0 || at[1] == at[2] || at[3] != at[4] {
		t.Error(a.o.Steps(), at)
	}
	// A gradient of 0.5 in each of Adam's steps is a change of the rate, which is halved.
	if !near(at[1:4], []float64{-0.5, -0.75, -0.875}, 1e-6) {
		t.Error(at)
	}

	b := newScaled(t)
	if err := json.Unmarshal(saved, b.w); err != nil {
		t.Fatal(err)
	}
	if err := snug.SetParam(b.m.W, weight); err != nil {
		t.Fatal(err)
	}
	i := 0
	for _, s := range b.w.State() {
		if err := snug.SetParam(s, state[i]); err != nil {
			t.Fatal(err)
		}
		i++
	}
	for i := 2; i < 5; i++ {
		if r := b.window(t, overflow[i]); r.Stepped != stepped[i] || b.sc.Scale() != scales[i] || get(t, b.m.W)[0] != at[i] {
			t.Error("resumed:", i, r, b.sc.Scale(), get(t, b.m.W), at[i])
		}
	}
	feed(t, b.w, b.m, 1, 1)
	if _, err := json.Marshal(b.w); err == nil {
		t.Error("saved in the middle of a window")
	}
	if json.Unmarshal(saved, b.w) == nil {
		t.Error("loaded in the middle of a window")
	}
	if err := json.Unmarshal([]byte(`{"optimizer":{"steps":1}}`), newScaled(t).w); err == nil {
		t.Error("loaded without a scaler")
	}
}

func TestTwoOptimizersAndPermanentOverflow(t *testing.T) {
	d := open(t)
	a, b := newScalar(t, d), newScalar(t, d)
	sc := amp.NewScaler(amp.DefaultScaler())
	wa, wb := window(t, a, optim.WindowConfig{Scaler: sc}), window(t, b, optim.WindowConfig{Scaler: sc})
	feed(t, wa, a, math.Inf(1), 1)
	feed(t, wb, b, 1, 1)
	ra, rb := step(t, wa), step(t, wb)
	if ra.Stepped || !rb.Stepped || sc.Scale() != 32768 || get(t, b.W)[0] != -1 || a.W.HasGrad() {
		t.Error(ra, rb, sc.Scale())
	}
	feed(t, wa, a, math.Inf(1), 1) // two overflows at one scale
	feed(t, wb, b, math.Inf(1), 1)
	if step(t, wa); step(t, wb).Stepped || sc.Scale() != 16384 {
		t.Error(sc.Scale())
	}

	for want, slope := range map[string]float64{"the loss was finite": math.MaxFloat32, "the loss was not finite": math.NaN()} {
		sc = amp.NewScaler(amp.DefaultScaler())
		m := &struct{ Head *scalar }{newScalar(t, d)}
		wa = window(t, m, optim.WindowConfig{Scaler: sc})
		for i := range 17 {
			// A gradient that is too big even without a scale: 2 micro-batches of the greatest float.
			feed(t, wa, m.Head, slope, 2)
			_, err := wa.Step()
			if i < 16 && (err != nil || sc.Scale() != 65536/float64(int(2)<<i)) {
				t.Fatal(i, err, sc.Scale())
			}
			if i == 16 && (err == nil || !strings.Contains(err.Error(), "the first gradient is that of head.w; "+want)) {
				t.Error(err)
			}
		}
		if err := wa.Drop(); err != nil || m.Head.W.HasGrad() || sc.Scale() != 1 {
			t.Error(err)
		}
	}
}

// Without a scaler, clipping refuses what is not finite, and the window can be dropped.
func TestClippingWhatIsNotFinite(t *testing.T) {
	d := open(t)
	m := newScalar(t, d)
	w := window(t, m, optim.WindowConfig{ClipNorm: 1})
	feed(t, w, m, math.NaN(), 1)
	if r, err := w.Step(); err == nil || r.Stepped || !strings.Contains(err.Error(), "the first gradient is that of w") {
		t.Error(r, err)
	}
	if err := w.Drop(); err != nil {
		t.Fatal(err)
	}
	feed(t, w, m, 8, 1)
	if r := step(t, w); r.Norm != 8 || get(t, m.W)[0] != -1 {
		t.Error(r, get(t, m.W))
	}
}

// One window for the whole model, or one for each part: a window's Backward touches its
// own parameters only.
func TestTwoModelsInOneLoss(t *testing.T) {
	d := open(t)
	a, b := newScalar(t, d), newScalar(t, d)
	w := window(t, a, optim.WindowConfig{})
	if err := d.Train(t.Context(), func(s *snug.Scope) error { return w.Backward(a.loss(s, 2).Add(b.loss(s, 3)), 1) }); err != nil {
		t.Fatal(err)
	}
	if step(t, w); get(t, a.W)[0] != -2 || b.W.HasGrad() {
		t.Error(get(t, a.W), b.W.HasGrad())
	}
}

func TestIncompleteGradient(t *testing.T) {
	d := open(t)
	m := newScalar(t, d)
	w := window(t, m, optim.WindowConfig{})
	boom := errors.New("boom")
	bad := func() error {
		return d.Train(t.Context(), func(s *snug.Scope) error {
			if err := w.Backward(m.loss(s, 1), 1); err != nil {
				return err
			}
			return boom
		})
	}
	if err := bad(); !errors.Is(err, boom) { // before anything was added: as if it had not been
		t.Error(err)
	}
	feed(t, w, m, 1, 1)
	if r := step(t, w); r.Count != 1 || get(t, m.W)[0] != -1 {
		t.Error(r)
	}
	feed(t, w, m, 1, 1)
	if err := bad(); !errors.Is(err, boom) {
		t.Error(err)
	}
	if _, err := w.Step(); !errors.Is(err, snug.ErrIncomplete) {
		t.Error(err)
	}
	if _, err := optim.ClipNorm(nn.Params(m), 1); !errors.Is(err, snug.ErrIncomplete) {
		t.Error(err)
	}
	if err := bad(); !errors.Is(err, snug.ErrIncomplete) {
		t.Error(err)
	}
	if err := w.Drop(); err != nil || m.W.HasGrad() {
		t.Error(err)
	}
	feed(t, w, m, 1, 1)
	if r := step(t, w); r.Count != 1 || get(t, m.W)[0] != -2 {
		t.Error(r)
	}
	feed(t, w, m, 1, 1)
	if err := d.Train(t.Context(), func(s *snug.Scope) error {
		if err := w.Backward(m.loss(s, 1), 1); err != nil {
			return err
		}
		for _, try := range []func() error{func() error { _, err := w.Step(); return err }, w.Drop, func() error { return optim.Zero(nn.Params(m)) }} {
			if err := try(); !errors.Is(err, snug.ErrInUse) {
				t.Error("inside a scope:", err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if r := step(t, w); r.Count != 2 {
		t.Error(r)
	}
}

// Batch mean 1, three steps: 0.271 and 3, recomputed or not; a failed step and a dropped
// window leave no trace.
func TestBatchNormStatistics(t *testing.T) {
	for name, o := range map[string][]snug.Option{
		"plain": nil, "checkpoint": {checkpoint.Every(1)}, "offload": {offload.Activations(offload.Config{MinBytes: 1})},
		"both": {checkpoint.Every(1), offload.Activations(offload.Config{MinBytes: 1})},
	} {
		d, l, fc := open(t), nn.NewBatchNorm(2), nn.NewLinear(2, 2, true)
		if err := nn.Init(t.Context(), d, []any{l, fc}, snug.NewRand(1)); err != nil {
			t.Fatal(err)
		}
		w := window(t, []any{l, fc}, optim.WindowConfig{})
		micro := func(result error) error {
			return d.Train(t.Context(), func(s *snug.Scope) error {
				x := snug.Upload(s, []float32{0, 0, 2, 2}, 2, 2)
				y := snug.Block(func(x *snug.Tensor) *snug.Tensor { return fc.Forward(l.Forward(x)) }, x)
				if err := w.Backward(nn.MSE(y, x), 1); err != nil {
					return err
				}
				return result
			}, o...)
		}
		for range 3 {
			if err := micro(nil); err != nil {
				t.Fatal(name, err)
			}
			step(t, w)
			if micro(errors.New("boom")) == nil {
				t.Fatal("no error")
			}
		}
		if err := micro(nil); err != nil {
			t.Fatal(err)
		}
		if n := get(t, l.NumBatchesTracked)[0]; n != 4 {
			t.Error(name, n)
		}
		if err := w.Drop(); err != nil {
			t.Fatal(err)
		}
		mean, n := get(t, l.RunningMean), get(t, l.NumBatchesTracked)[0]
		if !(math.Abs(mean[0]-0.271) < 1e-6) || n != 3 {
			t.Error(name, mean, n)
		}
	}
}

// Drop also puts the random position back: the window again is the same window.
func TestDropRewindsRandomness(t *testing.T) {
	d := open(t)
	m := newScalar(t, d)
	w, r := window(t, m, optim.WindowConfig{}), snug.NewRand(3)
	run := func() (x []float64) {
		for range 2 {
			if err := d.Train(t.Context(), func(s *snug.Scope) error {
				x = append(x, must(snug.Download[float64](snug.RandNormal(s, snug.Float64, 2)))...)
				return w.Backward(m.loss(s, 1), 1)
			}, snug.Random(r)); err != nil {
				t.Fatal(err)
			}
		}
		return x
	}
	first := run()
	if err := w.Drop(); err != nil {
		t.Fatal(err)
	}
	if again := run(); !slices.Equal(again, first) || first[0] == first[2] {
		t.Error(first, again)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestClip(t *testing.T) {
	f := golden.Load(t, "optim")
	tensor := func(role string) golden.Tensor { v, _ := f.Tensor("clip_grad_norm", role); return v }
	d := open(t)
	g0, g1 := tensor("g0"), tensor("g1")
	m := &struct{ A, B, C *snug.Param }{snug.NewParam(nil, g0.Shape...), snug.NewParam(nil, g1.Shape...), snug.NewParam(nil, 3)}
	if err := nn.Init(t.Context(), d, m, nil); err != nil {
		t.Fatal(err)
	}
	grad := func(p *snug.Param) (g []float64) {
		if err := d.Infer(t.Context(), func(s *snug.Scope) (err error) { g, err = snug.Download[float64](p.Grad(s)); return err }); err != nil {
			t.Fatal(err)
		}
		return g
	}
	push(t, m.A, g0.F)
	push(t, m.B, g1.F)
	norm, err := optim.ClipNorm(nn.Params(m), 1.5)
	if err != nil || !near([]float64{norm}, tensor("norm").F, 1e-6) || !near(grad(m.A), tensor("clipped0").F, 1e-5) || !near(grad(m.B), tensor("clipped1").F, 1e-5) {
		t.Error(norm, err)
	}
	before := grad(m.A)
	if norm, err = optim.ClipNorm(nn.Params(m), 2); err != nil || !near([]float64{norm}, []float64{1.5}, 1e-5) || !slices.Equal(grad(m.A), before) {
		t.Error(norm, err)
	}
	if err := optim.ClipValue(nn.Params(m), 0.25); err != nil || slices.Max(grad(m.A)) != 0.25 || slices.Min(grad(m.B)) != -0.25 {
		t.Error(err, grad(m.A), grad(m.B))
	}
	push(t, m.C, []float64{1, math.Inf(1), 2})
	before = grad(m.A)
	if norm, err = optim.ClipNorm(nn.Params(m), 0.1); err != nil || !math.IsInf(norm, 1) || !slices.Equal(grad(m.A), before) {
		t.Error(norm, err)
	}
	for _, bad := range []float64{0, -1, math.NaN()} {
		if _, err := optim.ClipNorm(nn.Params(m), bad); err == nil || optim.ClipValue(nn.Params(m), bad) == nil {
			t.Error(bad)
		}
	}
	if err := optim.Zero(nn.Params(m)); err != nil || m.A.HasGrad() {
		t.Error(err)
	}
	if norm, err = optim.ClipNorm(nn.Params(m), 1); err != nil || norm != 0 {
		t.Error(norm, err)
	}
}

// 100 times out of memory in backward, then half the batch: as if it had never been.
func TestOutOfMemoryInBackward(t *testing.T) {
	type run struct {
		d *snug.Device
		m *model
		w *optim.Window
	}
	start := func() *run {
		d := open(t)
		m := newModel(t, d)
		return &run{d, m, optim.NewWindow(must(optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())), optim.WindowConfig{ClipNorm: 1})}
	}
	rnd := snug.NewRand(5)
	micro := func(r *run, n, seed int, rnd *snug.Rand, before func()) error {
		return r.d.Train(t.Context(), func(s *snug.Scope) error {
			x := make([]float32, n*8)
			for i := range x {
				x[i] = float32(math.Sin(float64(i*seed + i)))
			}
			y := r.m.B.Forward(snug.Block(func(x *snug.Tensor) *snug.Tensor { return r.m.BN.Forward(r.m.A.Forward(x)).ReLU() }, snug.Upload(s, x, n, 8)))
			l := nn.MSE(y, snug.Zeros(s, snug.Float32, n, 3))
			before()
			return r.w.Backward(l, float64(n))
		}, snug.Random(rnd))
	}
	half := func(r *run, seed int, rnd *snug.Rand) {
		t.Helper()
		if err := micro(r, 4, seed, rnd, func() {}); err != nil {
			t.Fatal(err)
		}
		step(t, r.w)
	}
	a, b := start(), start()
	other := snug.NewRand(5)
	half(a, 0, rnd)
	half(b, 0, other)
	base := a.d.Memory().Stats()
	var kept []error
	for i := range 100 {
		err := micro(a, 8, i, rnd, func() { a.d.Memory().FailAt(i % 7) })
		a.d.Memory().FailAt(-1)
		e := new(memory.OutOfMemoryError)
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "backward") {
			t.Fatal(i, err)
		}
		kept = append(kept, err)
		if s := a.d.Memory().Stats(); s.Allocated != base.Allocated || s.OutOfMemory != int64(i+1) {
			t.Fatal(i, s.Allocated-base.Allocated, s.OutOfMemory)
		}
		if err := a.w.Drop(); err != nil {
			t.Fatal(err)
		}
		half(a, i, rnd)
		half(b, i, other)
	}
	at := map[string][]float64{}
	for n, p := range nn.Params(b.m) {
		at[n] = get(t, p)
	}
	for n, p := range nn.Params(a.m) {
		if !slices.Equal(get(t, p), at[n]) {
			t.Error(n, "differs")
		}
	}
	if len(kept) != 100 || rnd.Position() != other.Position() {
		t.Error(len(kept), rnd.Position(), other.Position())
	}
}

func ExampleWindow() {
	d := must(snug.Open("cpu", snug.Config{}))
	defer d.Close()
	m := &scalar{snug.NewParam(snug.Const(0), 1)}
	if err := nn.Init(ctx, d, m, nil); err != nil {
		panic(err)
	}
	w := optim.NewWindow(must(optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1})), optim.WindowConfig{})

	// The mean loss of 1 token is 4·w, that of 3 others 2·w: of all it is 2.5·w.
	for count, slope := range map[float64]float64{1: 4, 3: 2} {
		if err := d.Train(ctx, func(s *snug.Scope) error { return w.Backward(m.loss(s, slope), count) }); err != nil {
			panic(err)
		}
	}
	r := must(w.Step())
	fmt.Println(r.Stepped, r.Count, must(snug.GetParam[float32](m.W)))
	// Output: true 4 [-2.5]
}
