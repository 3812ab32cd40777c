package plan_test

import (
	"errors"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
	"github.com/snug-ml/snug/plan"
)

// deep has 16 blocks that save four units of 1 MiB for each sample, and one of their inputs.
type deep struct{ W *snug.Param }

func (m *deep) loss(s *snug.Scope, micro int) *snug.Tensor {
	x := snug.Zeros(s, snug.Float32, micro, 1<<18).Mul(m.W)
	for range 16 {
		x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Sigmoid().Tanh().Sigmoid() }, x)
	}
	return x.Mean()
}

// Where not one sample fits, savers come in as they are needed, and a step with the plan's
// option stays within the budget.
func TestFitWithSavers(t *testing.T) {
	for _, device := range []string{testdevice.Dry, testdevice.Name} {
		d := open(t, device, 1<<30)
		m := &deep{snug.NewParam(snug.Const(1), 1)}
		if err := nn.Init(t.Context(), d, m, nil); err != nil {
			t.Fatal(err)
		}
		o, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			budget int64
			saver  string
			micro  int
		}{
			{100 << 20, "", 1},
			{60 << 20, "checkpoint, a quarter of the budget kept", 2},
			{16 << 20, "checkpoint, offload", 2},
		} {
			p, err := plan.Fit(t.Context(), d, c.budget, plan.Job{Optimizer: o, Batch: 2, Loss: m.loss})
			if err != nil {
				t.Fatal(err)
			}
			if p.Saver != c.saver || p.Micro != c.micro || p.Reserved > c.budget {
				t.Errorf("%s, %d MiB: %d samples with %q, want %d with %q", device, c.budget>>20, p.Micro, p.Saver, c.micro, c.saver)
			}
			d.Memory().SetLimit(c.budget)
			if err := d.Train(t.Context(), func(s *snug.Scope) error { return m.loss(s, p.Micro).Backward() }, p.Option()); err != nil {
				t.Errorf("%s, %d MiB: %v", device, c.budget>>20, err)
			}
			if err := m.W.Zero(); err != nil {
				t.Fatal(err)
			}
			d.Memory().SetLimit(1 << 30)
		}
		if _, err := plan.Fit(t.Context(), d, 4<<20, plan.Job{Optimizer: o, Batch: 2, Loss: m.loss}); !errors.Is(err, memory.ErrOutOfMemory) {
			t.Errorf("%s: %v, want out of memory", device, err)
		}
	}
}
