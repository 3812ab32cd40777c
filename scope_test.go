package snug_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
)

// What scopes work with is used again: of one that has ended nothing reaches into the next.
func TestEndedScope(t *testing.T) {
	d := open(t)
	var old, result *snug.Tensor
	run := func(s *snug.Scope) error {
		old = ramp(s, 3).Track()
		result = old.GELU().Exp() // GELU's result is a recipe
		return result.Sum().Backward()
	}
	if err := d.Train(bg, run); err != nil {
		t.Fatal(err)
	}
	again := func(x ...*snug.Tensor) []*snug.Tensor { return []*snug.Tensor{x[0].GELU()} }
	gradient := func(meanwhile func()) (v []float32) {
		if err := d.Train(bg, func(s *snug.Scope) (err error) {
			x := ramp(s, 5).Track()
			y := x.GELU().Exp()
			meanwhile()
			if err = y.Sum().Backward(); err == nil {
				v, err = snug.Download[float32](x.Grad())
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return v
	}
	want := gradient(func() {})
	for _, x := range []*snug.Tensor{old, result} {
		got := gradient(func() {
			if err := x.ReLU().Mul(x).Sum().Backward(); x.Grad() != nil || err != nil {
				t.Errorf("gradient %v, backward %v", x.Grad(), err)
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		fails(t, d, func(s *snug.Scope) error { // which reads the first alone
			return snug.BlockN(again, []*snug.Tensor{ramp(s, 5).Track(), x}, snug.RecomputeHere())[0].Sum().Backward()
		})(snug.ErrFreed)
	}
}

func TestFirstFailureSticks(t *testing.T) {
	d := open(t)
	mine := errors.New("mine")
	fails(t, d, func(s *snug.Scope) error {
		y := ramp(s, 64, 10).MatMul(ramp(s, 7, 5))
		if got := y.Shape(); !slices.Equal(got, []int{64, 5}) {
			t.Errorf("shape after the failure: %v", got)
		}
		z := rows(rows(y.Reshape(-1, 2), 3, 9).ReLU(), 0, 100) // more failures, none heard of
		if v, err := z.Item(); !math.IsNaN(v) || !errors.Is(err, snug.ErrShape) {
			t.Error(v, err)
		}
		if v, err := snug.Download[float32](z); v != nil || err == nil {
			t.Error(v, err)
		}
		if got := z.String(); !strings.Contains(got, "float32[100 2] no value: matmul: shapes do not fit") {
			t.Error(got)
		}
		return mine
	})(mine, "train: matmul: shapes do not fit: x [64 10] and w [7 5], at scope_test.go:", "; then mine")
	fails(t, d, func(s *snug.Scope) error { return ramp(s, 2).Add(ramp(s, 3)).Backward() })(snug.ErrShape)
	fails(t, d, func(s *snug.Scope) error { return mine })(mine)
	if err := d.Train(bg, func(*snug.Scope) error { return nil }, snug.Eval(), snug.Eval()); err == nil {
		t.Error("contradicting options")
	}
}

func TestPanicAndCancel(t *testing.T) {
	d, r := open(t), snug.NewRand(1)
	func() {
		defer func() {
			if v := recover(); v != "as it was" {
				t.Error(v)
			}
		}()
		d.Train(bg, func(s *snug.Scope) error {
			snug.Block(func(x *snug.Tensor) *snug.Tensor { x.Add(x); panic("as it was") }, ramp(s, 9).Dropout(0.5))
			return nil
		}, snug.Random(r))
	}()
	ctx, cancel := context.WithCancel(bg)
	err := d.Train(ctx, func(s *snug.Scope) error {
		x := ramp(s, 9)
		cancel()
		if x.ReLU(); s.Err() == nil {
			t.Error("not cancelled")
		}
		return nil
	}, snug.Random(r))
	if !errors.Is(err, context.Canceled) || r.Position() != 0 {
		t.Error(err, r.Position())
	}
	if err := d.Train(ctx, func(*snug.Scope) error { t.Error("ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := d.Train(bg, func(s *snug.Scope) error { return nil }, snug.Random(r)); err != nil || r.Position() != 1 {
		t.Error(err, r.Position())
	}
}

// Two losses over one trunk, and two that share nothing.
func TestBackwardFreesWhatLedToItsLoss(t *testing.T) {
	d := open(t)
	p, q := snug.NewParam(snug.Uniform(1), 4, 4), snug.NewParam(snug.Uniform(1), 4, 4)
	place(t, d, p, q)
	if err := d.Train(bg, func(s *snug.Scope) error {
		x := ramp(s, 3, 4)
		logits := x.MatMul(p).Keep()
		a, b := mse(logits, x), mse(softSign(x.MatMul(q)), x)
		if err := a.Backward(); err != nil {
			return err
		}
		if _, err := snug.Download[float32](logits); err != nil {
			t.Error("Keep:", err)
		}
		if v, err := a.Item(); err != nil || !(v > 0) {
			t.Error(v, err)
		}
		return b.Backward()
	}); err != nil || !p.HasGrad() || !q.HasGrad() {
		t.Fatal(err)
	}
	nn.Close(&struct{ P, Q *snug.Param }{p, q})
	place(t, d, p, q)
	fails(t, d, func(s *snug.Scope) error {
		trunk := softSign(ramp(s, 3, 4).MatMul(p))
		a, b := mse(trunk, ramp(s, 3, 4)), mse(trunk.MatMul(q), ramp(s, 3, 4))
		if err := a.Backward(); err != nil {
			return err
		}
		return b.Backward()
	})(snug.ErrFreed, "soft sign at core_test.go:", "by Backward at scope_test.go:")
	if p.HasGrad() || q.HasGrad() {
		t.Error("gradients of a failed scope")
	}
	fails(t, d, func(s *snug.Scope) error {
		y := ramp(s, 3, 4).MatMul(p)
		if err := mse(y, ramp(s, 3, 4)).Backward(); err != nil {
			return err
		}
		y.ReLU()
		return nil
	})(snug.ErrFreed, "matmul at scope_test.go:", "Keep it before")
	var old *snug.Tensor
	d.Infer(bg, func(s *snug.Scope) error { old = ramp(s, 2); return nil })
	fails(t, d, func(s *snug.Scope) error { ramp(s, 2).Add(old); return nil })(snug.ErrFreed, "upload at core_test.go:")
	if _, err := old.Item(); !errors.Is(err, snug.ErrFreed) {
		t.Error(err)
	}
}

func TestTrackAndDetach(t *testing.T) {
	d := open(t)
	if err := d.Train(bg, func(s *snug.Scope) error {
		x := ramp(s, 2, 3).Track()
		if err := mse(x.Add(x.Detach()), snug.Upload(s, make([]float32, 6), 2, 3)).Backward(); err != nil {
			return err
		}
		g, err := snug.Download[float64](x.Grad())
		v, _ := snug.Download[float64](x)
		for i := range g {
			if !(math.Abs(g[i]-2*2*v[i]/6) < 1e-6) { // through one of the two only
				t.Error(i, g[i], v[i])
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestWritesInPlace(t *testing.T) {
	d := open(t)
	w := snug.NewParam(snug.Uniform(1), 4, 4)
	place(t, d, w)
	fails(t, d, func(s *snug.Scope) error {
		h := ramp(s, 3, 4).MatMul(w)
		y := softSign(h)
		y.AddInPlace(h)
		return mse(y, h).Backward()
	})(nil, "soft sign backward: y, which it saved, was written by add in place at scope_test.go:", ", at core_test.go:")
	fails(t, d, func(s *snug.Scope) error {
		h := ramp(s, 3, 4).MatMul(w)
		v := rows(h, 0, 2)
		h.ReLUInPlace()
		softSign(v)
		return nil
	})(nil, "matmul at scope_test.go:", "was written by relu in place")
	fails(t, d, func(s *snug.Scope) error { w.In(s).ReLUInPlace(); return nil })(snug.ErrInUse)
	fails(t, d, func(s *snug.Scope) error {
		h := ramp(s, 3, 4).MatMul(w)
		y := snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.AddInPlace(rows(w.In(s), 0, 1)) }, h, checkpoint.Here())
		return mse(y, ramp(s, 3, 4)).Backward()
	})(nil, "a recomputed block would write the result of matmul at scope_test.go:")
	if w.HasGrad() {
		t.Error("gradient of failed scopes")
	}
}

func TestViewsCountOnTheStorage(t *testing.T) {
	d := open(t)
	if err := d.Infer(bg, func(s *snug.Scope) error {
		v := snug.Block(func(x *snug.Tensor) *snug.Tensor { return rows(x.Add(x), 1, 3).Reshape(-1) }, ramp(s, 4, 512))
		if n := d.Memory().Stats().Categories[memory.Activations]; n != 4*512*4 {
			t.Error(n)
		}
		got, err := snug.Download[float32](v)
		if want := batch(4*512, 1, 3); len(got) != 1024 || got[0] != 2*want[512] {
			t.Error(len(got))
		}
		v.Free()
		if n := d.Memory().Stats().Categories[memory.Activations]; n != 0 {
			t.Error(n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A block that reads something else the second time is an error, not another gradient.
func TestCapturedVariable(t *testing.T) {
	d := open(t)
	ps := []*snug.Param{snug.NewParam(snug.Uniform(1), 4, 4), snug.NewParam(snug.Uniform(1), 4, 4)}
	place(t, d, ps...)
	for _, tensor := range []bool{true, false} {
		fails(t, d, func(s *snug.Scope) error {
			x := ramp(s, 3, 4)
			var w *snug.Param
			for _, w = range ps {
				x = snug.Block(func(in *snug.Tensor) *snug.Tensor {
					if tensor {
						return softSign(x.MatMul(ps[0])) // x, where in is meant
					}
					return softSign(in.MatMul(w))
				}, x, checkpoint.Here())
			}
			return mse(x, ramp(s, 3, 4)).Backward()
		})(nil, "matmul: the block's second run reads other tensors than its first", "scope_test.go:")
	}
	grads := func(o ...snug.Option) (g []float32) { // a captured tensor that stays is fine
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := ramp(s, 3, 4)
			skip := x.MatMul(ps[1])
			y := snug.Block(func(x *snug.Tensor) *snug.Tensor { return softSign(x.MatMul(ps[0]).Add(skip)) }, x, o...)
			if err := mse(y, x).Backward(); err != nil {
				return err
			}
			var err error
			g, err = snug.Download[float32](ps[1].Grad(s))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, p := range ps {
			p.Zero()
		}
		return g
	}
	if a, b := grads(), grads(checkpoint.Here()); !slices.Equal(a, b) || len(a) != 16 {
		t.Error(a, b)
	}
}

// A naive function keeps nothing and makes garbage: it fits all the same, and says so.
func TestGarbageIsTheLastResort(t *testing.T) {
	d := open(t)
	if err := d.Infer(bg, func(s *snug.Scope) error {
		y := snug.Upload(s, make([]float32, 1<<20), 1<<20) // 4 MiB of 64
		for range 100 {
			y = y.Add(y)
		}
		_, err := snug.Download[float32](y)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if s := d.Memory().Stats(); s.Rescues < 5 || s.RescuedBytes < 300<<20 || s.OutOfMemory != 0 {
		t.Errorf("%+v", s)
	} else {
		t.Logf("%d rescues, %d MiB", s.Rescues, s.RescuedBytes>>20)
	}
	var keep []*snug.Tensor // what is reachable is not garbage
	err := d.Infer(bg, func(s *snug.Scope) error {
		for range 100 {
			keep = append(keep, snug.Upload(s, make([]float32, 1<<20), 1<<20))
		}
		return nil
	})
	e := new(memory.OutOfMemoryError)
	if !errors.As(err, &e) || e.Cause != "limit" || !strings.Contains(e.Report(), "inputs") {
		t.Error(err)
	}
	runtime.KeepAlive(keep)
}

func TestManyGoroutinesInfer(t *testing.T) {
	d := open(t)
	m := newNet(1)
	if err := nn.Init(bg, d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := d.Infer(bg, func(s *snug.Scope) error {
					_, err := snug.Download[float32](m.Forward(snug.Upload(s, batch(4, 24, 1), 4, 24)))
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p := m.FC.W
	d.Infer(bg, func(s *snug.Scope) error {
		if p.In(s); !errors.Is(p.Zero(), snug.ErrInUse) {
			t.Error("changed under a scope that reads it")
		}
		return nil
	})
}

// Every operation's gradient against differences, plainly and recomputed.
func TestGradients(t *testing.T) {
	w, b := snug.NewParam(snug.Uniform(1), 4, 4), snug.NewParam(snug.Uniform(1), 4)
	d := open(t)
	place(t, d, w, b)
	r := snug.NewRand(3)
	for name, f := range map[string]func(*snug.Tensor) *snug.Tensor{
		"matmul":  func(x *snug.Tensor) *snug.Tensor { return x.MatMul(w) },
		"add":     func(x *snug.Tensor) *snug.Tensor { return x.Add(b).Add(rows(x, 0, 1)) },
		"relu":    func(x *snug.Tensor) *snug.Tensor { return x.ReLU() },
		"inplace": func(x *snug.Tensor) *snug.Tensor { return x.Add(b).AddInPlace(x).ReLUInPlace() },
		"user's":  softSign,
		"shared": func(x *snug.Tensor) *snug.Tensor { // one gradient flows to three, and one of them gets more
			u, v := softSign(x), x.ReLU()
			w := softSign(u)
			return u.Add(v).Add(w)
		},
		"nested":  func(x *snug.Tensor) *snug.Tensor { return snug.Apply(&doubled, x) },
		"dropout": func(x *snug.Tensor) *snug.Tensor { return x.Dropout(0.3) },
		"views":   func(x *snug.Tensor) *snug.Tensor { return softSign(rows(x, 1, 4).Reshape(2, -1)).T().Reshape(-1, 4) },
		"recipe": func(x *snug.Tensor) *snug.Tensor {
			return scaledReLU(x, b).MatMul(w)
		},
	} {
		for _, o := range [][]snug.Option{nil, {checkpoint.Here()}} {
			data := batch(20, 1, 11)
			loss := func(grad bool) (l float64, g []float64) {
				r.SetPosition(0)
				if err := d.Train(bg, func(s *snug.Scope) (err error) {
					x := snug.Upload(s, data, 5, 4).Track()
					y := snug.Block(f, x, o...)
					l2 := mse(y, rows(snug.Upload(s, batch(20, 1, 5), 5, 4), 0, y.Dim(0)))
					if grad {
						if err := l2.Backward(snug.Into(none)); err != nil {
							return err
						}
						g, err = snug.Download[float64](x.Grad())
					}
					l, _ = l2.Item()
					return err
				}, snug.Random(r)); err != nil {
					t.Fatal(name, err)
				}
				return
			}
			_, g := loss(true)
			for i := range data {
				const h = 1.0 / 256
				v := data[i]
				data[i] = v + h
				hi, _ := loss(false)
				data[i] = v - h
				lo, _ := loss(false)
				data[i] = v
				if want := (hi - lo) / (2 * h); !(math.Abs(g[i]-want) < 2e-3) {
					t.Errorf("%s, %d options [%d]: %g, want %g", name, len(o), i, g[i], want)
				}
			}
			if w.HasGrad() || b.HasGrad() {
				t.Error("a gradient that was not asked for")
			}
		}
	}
}

// doubled is an operation made of others, which run unrecorded: 2·softSign(x).
var doubled = snug.Op{
	Name: "doubled",
	Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
		y := softSign(in[0])
		c.Save("y", y)
		return y.Add(y)
	},
	Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
		return softSignOp.Backward(c, dy.Add(dy))
	},
}

func none(func(string, *snug.Param) bool) {}
