package snug_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

var all = offload.Config{MinBytes: 1}

type setting struct {
	name    string
	segment int
	step    func(*optim.Window, *snug.Tensor, float64) error
	opts    []snug.Option
}

var settings = []setting{
	{"plain", 1, nil, nil},
	{"checkpoint 1x4", 4, nil, []snug.Option{checkpoint.Every(1)}},
	{"checkpoint 2x2", 2, nil, []snug.Option{checkpoint.Every(1)}},
	{"checkpoint 4x1", 1, nil, []snug.Option{checkpoint.Every(1)}},
	{"checkpoint every 2nd", 1, nil, []snug.Option{checkpoint.Every(2)}},
	{"offload", 1, nil, []snug.Option{offload.Activations(all)}},
	{"checkpoint and offload", 2, nil, []snug.Option{checkpoint.Every(1), offload.Activations(all)}},
	{"backward step", 1, backwardStep, nil},
	{"backward step, checkpoint and offload", 1, backwardStep, []snug.Option{checkpoint.Every(1), offload.Activations(all)}},
}

// Every saver gives the plain run's bits after 5 steps, with dropout and batch norm.
func TestSameBits(t *testing.T) {
	for _, model := range []string{"mlp", "net"} {
		for _, micro := range []int{1, 2} {
			var want []uint32
			for _, c := range settings {
				m := nn.Layer(newMLP())
				if model == "net" {
					m = newNet(c.segment)
				}
				r := newRun(t, testdevice.Name, m, c.opts...)
				r.step = c.step
				base := r.dev.Memory().Stats().Allocated
				r.dev.Memory().ResetPeak()
				for i := range 5 {
					if err := r.train(32, micro, i); err != nil {
						t.Fatal(c.name, err)
					}
				}
				st := r.dev.Memory().Stats()
				if st.Allocated != base || r.dev.Host().Stats().Allocated != 0 {
					t.Fatalf("%s: %d bytes more than before", c.name, st.Allocated-base)
				}
				got := r.bits(t)
				if want == nil {
					want = got
				}
				if n := differ(want, got); n != 0 {
					t.Errorf("%s %s, %d micro-batches: %d of %d values differ", model, c.name, micro, n, len(want))
				}
				t.Logf("%s, %d micro, %-40s peak %d, host %d", model, micro, c.name, st.Peak.Allocated-base, r.dev.Host().Stats().Peak.Allocated)
			}
		}
	}
}

// A dry run predicts the peak, allocated and reserved, to the byte.
func TestPrediction(t *testing.T) {
	for i, c := range settings {
		for _, micro := range []int{1, 4} {
			rows := 512
			if micro == 1 && (i == 0 || i == 5 || i == 6) {
				rows = 1024 // some blocks are large, and there are several segments
			}
			for _, model := range []string{"mlp", "net"} {
				var got [2][2]memory.Stats
				for i, device := range []string{testdevice.Dry, testdevice.Name} {
					m := nn.Layer(newMLP())
					if model == "net" {
						m = newNet(c.segment)
					}
					r := newRun(t, device, m, c.opts...)
					r.step = c.step
					for k := range 2 {
						if err := r.train(rows, micro, k); err != nil {
							t.Fatal(device, c.name, err)
						}
					}
					got[i] = [2]memory.Stats{r.dev.Memory().Stats(), r.dev.Host().Stats()}
				}
				if got[0] != got[1] {
					t.Errorf("%s %s: predicted %+v\nmeasured %+v", model, c.name, got[0], got[1])
				}
				t.Logf("%s, %d micro, %-40s peak %8d, reserved %8d, host %7d", model, micro, c.name,
					got[0][0].Peak.Allocated, got[0][0].Peak.Reserved, got[0][1].Peak.Allocated)
			}
		}
	}
}

// The n-th allocation of a step fails, on the device and on the host: for every n in the
// full tests, else for every seventh.
func TestEveryAllocationMayFail(t *testing.T) {
	newNet := func(segment int) *net {
		m := newNet(segment)
		m.Layer1 = m.Layer1[:2]
		return m
	}
	for _, c := range []setting{settings[0], settings[6], settings[8]} {
		want := newRun(t, testdevice.Name, newNet(c.segment), c.opts...)
		want.step = c.step
		for i := range 2 {
			if err := want.train(8, 2, i); err != nil {
				t.Fatal(err)
			}
		}
		right := want.bits(t)
		for _, host := range []bool{false, true} {
			torn := 0
			n, stride := 0, 7
			switch {
			case full:
				stride = 1
			case testing.Short():
				stride = 43
			}
			for ; ; n += stride {
				r := newRun(t, testdevice.Name, newNet(c.segment), c.opts...)
				r.step = c.step
				if err := r.train(8, 2, 0); err != nil {
					t.Fatal(err)
				}
				before, base := r.bits(t), r.dev.Memory().Stats().Allocated
				pool := r.dev.Memory()
				if host {
					pool = r.dev.Host()
				}
				pool.FailAt(n)
				err := r.train(8, 2, 1)
				pool.FailAt(-1)
				if err == nil {
					break
				}
				if !errors.Is(err, memory.ErrOutOfMemory) {
					t.Fatal(c.name, n, err)
				}
				if errors.Is(err, snug.ErrTorn) {
					torn++
				}
				if err := r.w.Drop(); err != nil {
					t.Fatal(err)
				}
				if got := r.dev.Memory().Stats().Allocated - base; got != 0 {
					t.Fatalf("%s, allocation %d: %d bytes leak", c.name, n, got)
				}
				if got := r.dev.Host().Stats().Allocated; got != 0 {
					t.Fatalf("%s, allocation %d: %d bytes leak on the host", c.name, n, got)
				}
				if errors.Is(err, snug.ErrTorn) {
					continue
				}
				if d := differ(before, r.bits(t)); d != 0 {
					t.Fatalf("%s, allocation %d: %d values moved: %v", c.name, n, d, err)
				}
				if err := r.train(8, 2, 1); err != nil { // and the step can be had after all
					t.Fatal(err)
				}
				if d := differ(right, r.bits(t)); d != 0 {
					t.Fatalf("%s, allocation %d: %d values differ after the retry", c.name, n, d)
				}
			}
			if torn > 0 && c.step == nil {
				t.Errorf("%s: torn", c.name)
			}
			t.Logf("%s, host %t: %d allocations failed in turn, %d of them tore the parameters", c.name, host, n, torn)
		}
	}
}

// 16 blocks that save a unit each, in k segments that save their input.
func TestSavedUnits(t *testing.T) {
	for k, want := range map[int]int64{1: 17, 2: 10, 4: 8, 8: 10, 16: 17, 0: 16} {
		d, _ := snug.Open(testdevice.Name, snug.Config{})
		x := snug.NewParam(snug.Const(1), 1, 1<<18) // a unit of 1 MiB
		if err := snug.Place(bg, d, nil, memory.Parameters, func(y func(string, *snug.Param) bool) { y("x", x) }); err != nil {
			t.Fatal(err)
		}
		var peak int64
		err := d.Train(bg, func(s *snug.Scope) error {
			in := snug.Upload(s, make([]float32, 1<<18), 1, 1<<18).Add(x)
			h := in
			one := softSign
			segments, o := max(k, 1), checkpoint.Here()
			for range segments {
				seg := func(h *snug.Tensor) *snug.Tensor {
					for range 16 / segments {
						h = snug.Block(one, h)
					}
					return h
				}
				if k == 0 {
					h = seg(h)
				} else {
					h = snug.Block(seg, h, o)
				}
			}
			l := mse(h, snug.Upload(s, make([]float32, 1<<18), 1, 1<<18))
			in.Free() // what is saved of it stays
			d.Memory().ResetPeak()
			err := l.Backward()
			peak = d.Memory().Stats().AtPeak[memory.Activations]
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if peak>>20 != want {
			t.Errorf("%d segments: %d units, want %d", k, peak>>20, want)
		}
	}
}

// A recomputed block inside another one, a frozen first layer, and two results.
func TestNestedBlocks(t *testing.T) {
	grads := func(freeze bool, o ...snug.Option) []float32 {
		d, m, r := open(t), newNet(2), snug.NewRand(9)
		if err := nn.Init(bg, d, m, r); err != nil {
			t.Fatal(err)
		}
		if freeze {
			nn.Freeze(m.Layer1[0])
		}
		var g []float32
		if err := d.Train(bg, func(s *snug.Scope) error {
			inner := func(x *snug.Tensor) *snug.Tensor {
				return snug.Block(m.Layer1[1].Forward, m.Layer1[0].Forward(x), o...)
			}
			x := m.Layer1[2].N1.Forward(ramp(s, 16, 32)) // a recipe, as argument and captured
			captured := snug.Layer(m, func(x *snug.Tensor) *snug.Tensor { return m.Layer1[3].N1.Forward(x.Add(x)) }, x)
			ys := snug.BlockN(func(x ...*snug.Tensor) []*snug.Tensor {
				y := snug.Block(inner, x[0], o...)
				return []*snug.Tensor{y, y.Add(x[1]).Add(captured), x[0]}
			}, []*snug.Tensor{x, x.Add(x)}, o...)
			captured.Free() // the block's share is what is left
			if err := mse(ys[0].Add(ys[1]).Add(ys[2]), x).Backward(); err != nil {
				return err
			}
			for _, l := range m.Layer1[:2] {
				if w := l.FC1.W.Grad(s); w != nil {
					v, err := snug.Download[float32](w)
					if g = append(g, v...); err != nil {
						return err
					}
				}
			}
			return nil
		}, snug.Random(r)); err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, freeze := range []bool{false, true} {
		a, b := grads(freeze), grads(freeze, checkpoint.Here())
		if !slices.Equal(a, b) || freeze && len(a) != 32*32 || !freeze && len(a) != 2*32*32 {
			t.Errorf("frozen %t: %d and %d gradients differ", freeze, len(a), len(b))
		}
	}
}

// Inference saves nothing; offload leaves the device with what is not saved.
func TestWhatForwardHolds(t *testing.T) {
	forward := func(infer bool, o ...snug.Option) (held, peak int64) {
		r := newRun(t, testdevice.Dry, newNet(1))
		start := r.dev.Train
		if infer {
			start = r.dev.Infer
		}
		base := r.dev.Memory().Stats().Allocated
		r.dev.Memory().ResetPeak()
		if err := start(bg, func(s *snug.Scope) error {
			r.m.Forward(snug.Upload(s, batch(512, 24, 1), 512, 24))
			held = r.dev.Memory().Stats().Allocated - base
			return nil
		}, append(o, snug.Random(r.rng))...); err != nil {
			t.Fatal(err)
		}
		return held, r.dev.Memory().Stats().Peak.Allocated - base
	}
	h0, p0 := forward(true)
	h1, p1 := forward(false)
	h2, p2 := forward(false, offload.Activations(all))
	t.Logf("held after forward, and its peak: infer %d %d, train %d %d, offloaded %d %d", h0, p0, h1, p1, h2, p2)
	if !(h0 < h1 && p0 <= p1 && h2 < h1 && p2 < p1) {
		t.Error("no saving")
	}
}

// A second run computes no more than backward reads: here one result of three.
func TestRecomputationStopsEarly(t *testing.T) {
	requests := func(o ...snug.Option) int64 {
		d, l := open(t), newDense(8, 8)
		if err := nn.Init(bg, d, l, snug.NewRand(1)); err != nil {
			t.Fatal(err)
		}
		var n int64
		if err := d.Train(bg, func(s *snug.Scope) error {
			y := snug.Block(func(x *snug.Tensor) *snug.Tensor { return l.Forward(softSign(x)) }, ramp(s, 4, 8), o...)
			loss := mse(y, ramp(s, 4, 8))
			n = d.Memory().Stats().Requests
			err := loss.Backward()
			n = d.Memory().Stats().Requests - n
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if plain, again := requests(), requests(checkpoint.Here()); again != plain+1 {
		t.Errorf("%d allocations in backward, and %d recomputed", plain, again)
	}
	runs := 0 // Every is for the Blocks right inside; one in such a Block runs twice, not three times
	if err := open(t).Train(bg, func(s *snug.Scope) error {
		inner := func(x *snug.Tensor) *snug.Tensor { runs++; return softSign(x) }
		y := snug.Block(func(x *snug.Tensor) *snug.Tensor { return softSign(snug.Block(inner, x)) }, ramp(s, 4, 8).Track())
		return mse(y, ramp(s, 4, 8)).Backward()
	}, checkpoint.Every(1)); err != nil || runs != 2 {
		t.Error(runs, err)
	}
}
