package snug_test

import (
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// gradsRun has gradients wait on the host, beside the state or alone.
func gradsRun(t *testing.T, device string, at offload.Place, o ...snug.Option) *run {
	t.Helper()
	r := newRunAt(t, device, newNet(1), at, o...)
	offload.Grads(nn.Params(r.m))
	return r
}

// Gradients that are final are on the host, over micro-batches, and no bit is another; where
// they are clipped, read or added to, too.
func TestOffloadGrads(t *testing.T) {
	for name, c := range map[string]struct {
		at   offload.Place
		step func(*optim.Window, *snug.Tensor, float64) error
		clip float64
		o    []snug.Option
	}{
		"alone":          {offload.OnDevice, nil, 0, nil},
		"ahead":          {offload.OnDevice, nil, 0.1, []snug.Option{ahead(8 << 10)}},
		"state, clipped": {offload.OnHost, nil, 0.1, []snug.Option{checkpoint.Every(2), ahead(1 << 20)}},
		"streamed":       {offload.Streamed, nil, 0, []snug.Option{amp.Autocast(snug.BFloat16)}},
		"backward step":  {offload.OnHost, backwardStep, 0, []snug.Option{checkpoint.Every(1)}},
	} {
		if testdevice.Name != "cpu" && c.at == offload.OnHost {
			continue // it rounds in other places
		}
		window := optim.WindowConfig{ClipNorm: c.clip}
		plain := newRun(t, testdevice.Name, newNet(1), c.o...)
		plain.step, plain.w = c.step, optim.NewWindow(plain.o, window)
		steps(t, plain)
		var stats [2][2]memory.Stats
		for i, device := range []string{testdevice.Dry, testdevice.Name} {
			r := gradsRun(t, device, c.at, c.o...)
			r.step, r.w = c.step, optim.NewWindow(r.o, window)
			base, host := r.dev.Memory().Stats().Allocated, r.dev.Host().Stats().Allocated
			steps(t, r)
			stats[i] = [2]memory.Stats{r.dev.Memory().Stats(), r.dev.Host().Stats()}
			if stats[i][0].Allocated != base || stats[i][1].Allocated != host {
				t.Errorf("%s: bytes are left", name)
			}
			if device == testdevice.Name && differ(plain.bits(t), r.bits(t)) != 0 {
				t.Errorf("%s: other bits", name)
			}
			// After a micro-batch they are there, and one moves back to be read.
			if err := r.micro(32, 1, plainBackward); err != nil {
				t.Fatal(err)
			}
			d, h := r.dev.Memory().Stats(), r.dev.Host().Stats()
			if d.Categories[memory.Gradients] != 0 || h.Categories[memory.Gradients] < d.Categories[memory.Parameters] {
				t.Errorf("%s: %d bytes of gradients on the device, %d on the host", name, d.Categories[memory.Gradients], h.Categories[memory.Gradients])
			}
			if err := r.w.Drop(); err != nil || r.dev.Host().Stats().Allocated != host {
				t.Error(name, err)
			}
		}
		if stats[0] != stats[1] {
			t.Errorf("%s: predicted %+v\nmeasured %+v", name, stats[0], stats[1])
		}
		if p, q := stats[1][0].AtPeak[memory.Gradients], plain.dev.Memory().Stats().AtPeak[memory.Gradients]; p > q/2 && c.step == nil && c.o == nil {
			t.Errorf("%s: %d bytes of gradients at the peak, plainly %d", name, p, q)
		}
	}
}

// Two losses in one scope, and a gradient that is read and changed between them.
func TestOffloadGradsInOneScope(t *testing.T) {
	for _, bytes := range aheads {
		var got [2][]float32
		for i := range got {
			d := open(t)
			l := newDense(8, 8)
			if err := nn.Init(bg, d, l, snug.NewRand(1)); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				offload.Grads(nn.Params(l))
			}
			if err := d.Train(bg, func(s *snug.Scope) error {
				for k := range 3 {
					if err := mse(l.Forward(ramp(s, 4, 8)), ramp(s, 4, 8)).Backward(); err != nil {
						return err
					}
					if k < 2 {
						l.W.Grad(s).MulScalarInPlace(0.5)
					}
				}
				return nil
			}, ahead(bytes)); err != nil {
				t.Fatal(err)
			}
			if err := d.Infer(bg, func(s *snug.Scope) (err error) {
				got[i], err = snug.Download[float32](l.W.Grad(s))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := optim.Zero(nn.Params(l)); err != nil || d.Memory().Stats().Categories[memory.Gradients]+d.Host().Stats().Allocated != 0 {
				t.Error(err, d.Memory().Stats().Categories[memory.Gradients], d.Host().Stats().Allocated)
			}
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%d ahead: other bits", bytes)
		}
	}
}

func TestOffloadGradsAllocationMayFail(t *testing.T) {
	newRun := func() *run {
		r := gradsRun(t, testdevice.Name, offload.OnHost, checkpoint.Every(2), ahead(8<<10))
		if err := r.train(8, 2, 0); err != nil {
			t.Fatal(err)
		}
		return r
	}
	sweep(t, newRun, func(d *snug.Device) *memory.Pool { return d.Memory() }, 1)
	sweep(t, newRun, func(d *snug.Device) *memory.Pool { return d.Host() }, 1)
}
