package snug_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// The state is on the host, and no bit is another, whether it is updated there or streamed.
func TestOffloadState(t *testing.T) {
	plain := newRun(t, testdevice.Name, newNet(1))
	steps(t, plain)
	want, size := plain.bits(t), plain.dev.Memory().Stats().Categories[memory.OptimizerState]
	for _, at := range []offload.Place{offload.OnHost, offload.Streamed} {
		var stats [2][2]memory.Stats
		for i, device := range []string{testdevice.Dry, testdevice.Name} {
			r := newRunAt(t, device, newNet(1), at)
			steps(t, r)
			d, h := r.dev.Memory().Stats(), r.dev.Host().Stats()
			stats[i] = [2]memory.Stats{d, h}
			if n := d.Peak.Allocated; d.Categories[memory.OptimizerState] != 0 || h.Categories[memory.OptimizerState] != size || n >= plain.dev.Memory().Stats().Peak.Allocated-size/2 {
				t.Errorf("%s, %v: %d bytes of state on the device, %d on the host, want 0 and %d; peak %d", device, at, d.Categories[memory.OptimizerState], h.Categories[memory.OptimizerState], size, n)
			}
			if stage := d.Categories[memory.Workspace]; (stage == 2*32*32*4) != (at == offload.Streamed) {
				t.Errorf("%v: a stage of %d bytes", at, stage)
			}
			if device != testdevice.Name {
			} else if got := r.bits(t); at == offload.OnHost && device != "cpu" { // the CPU rounds in other places
				if d := distance(got, want); !(d <= 1e-5) {
					t.Errorf("%v: %g from the plain run", at, d)
				}
			} else if differ(want, got) != 0 {
				t.Errorf("%v: other bits", at)
			}
			if err := errors.Join(r.o.Close(), nn.Close(r.m)); err != nil {
				t.Fatal(err)
			}
			if d, h := r.dev.Memory().Stats().Allocated, r.dev.Host().Stats().Allocated; d != 0 || h != 0 {
				t.Errorf("%v: %d and %d bytes are left", at, d, h)
			}
		}
		if stats[0] != stats[1] {
			t.Errorf("%v: predicted %+v\nmeasured %+v", at, stats[0], stats[1])
		}
	}
}

// newRunAt is newRun with the optimizer's state elsewhere.
func newRunAt(t *testing.T, device string, m nn.Layer, at offload.Place, o ...snug.Option) *run {
	t.Helper()
	r := newRun(t, device, m, o...)
	if err := r.o.Close(); err != nil {
		t.Fatal(err)
	}
	r.dev.Memory().ResetPeak()
	offload.State(r.dev, at)
	var err error
	if r.o, err = optim.NewAdamW(nn.Params(m), optim.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	r.w = optim.NewWindow(r.o, optim.WindowConfig{})
	return r
}

// Making the optimizer fails whole, wherever memory is short.
func TestOffloadStateAllOrNothing(t *testing.T) {
	d, m := open(t), newNet(1)
	if err := nn.Init(bg, d, m, nil); err != nil {
		t.Fatal(err)
	}
	base := d.Memory().Stats().Allocated
	offload.State(d, offload.Streamed)
	for _, pool := range []*memory.Pool{d.Memory(), d.Host()} {
		failed := 0
		for n := 0; ; n++ {
			pool.FailAt(n)
			o, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())
			pool.FailAt(-1)
			if err == nil {
				o.Close()
				break
			}
			if failed++; !errors.Is(err, memory.ErrOutOfMemory) {
				t.Fatal(err)
			}
			if d, h := d.Memory().Stats().Allocated-base, d.Host().Stats().Allocated; d != 0 || h != 0 {
				t.Fatalf("allocation %d: %d and %d bytes are left", n, d, h)
			}
		}
		if failed == 0 {
			t.Error("nothing failed")
		}
	}
	if n := d.Memory().Stats().Allocated; n != base {
		t.Errorf("%d bytes are left", n-base)
	}
}

// Step allocates nothing, wherever state and gradients are: what it works in is there from
// when the optimizer is made, on a device whose memory is its own, too.
func TestOffloadStepAllocatesNothing(t *testing.T) {
	for _, device := range []string{"dry:cuda", testdevice.Name} {
		for name, make := range map[string]func(iter.Seq2[string, *snug.Param]) (optim.Optimizer, error){
			"adamw": func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
				return optim.NewAdamW(p, optim.DefaultAdamW())
			},
			"8 bits": func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
				c := optim.DefaultAdamW()
				c.StateDType = snug.Uint8
				return optim.NewAdamW(p, c)
			},
			"adafactor": func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
				return optim.NewAdafactor(p, optim.DefaultAdafactor())
			},
			"sgd": func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
				return optim.NewSGD(p, optim.DefaultSGD())
			},
		} {
			for _, at := range []offload.Place{offload.OnDevice, offload.OnHost, offload.Streamed} {
				for _, grads := range []bool{false, true} {
					r := newRun(t, device, newNet(1))
					if err := r.o.Close(); err != nil {
						t.Fatal(err)
					}
					before, beforeHost := r.dev.Memory().Stats().Allocated, r.dev.Host().Stats().Allocated
					offload.State(r.dev, at)
					o, err := make(nn.Params(r.m))
					if err != nil {
						t.Fatal(err)
					}
					if grads {
						offload.Grads(nn.Params(r.m))
					}
					r.o, r.w = o, optim.NewWindow(o, optim.WindowConfig{})
					if err := r.micro(8, 1, plainBackward); err != nil {
						t.Fatal(err)
					}
					d, h := r.dev.Memory().Stats(), r.dev.Host().Stats()
					if _, err := r.w.Step(); err != nil {
						t.Fatal(err)
					}
					if a, b := r.dev.Memory().Stats().Requests-d.Requests, r.dev.Host().Stats().Requests-h.Requests; a != 0 || b != 0 {
						t.Errorf("%s on %s, %v, gradients on the host %t: %d and %d allocations", name, device, at, grads, a, b)
					}
					if err := o.Close(); err != nil {
						t.Fatal(err)
					}
					if a, b := r.dev.Memory().Stats().Allocated, r.dev.Host().Stats().Allocated; a != before || b != beforeHost {
						t.Errorf("%s on %s, %v: %d and %d bytes are left", name, device, at, a-before, b-beforeHost)
					}
				}
			}
		}
	}
}
