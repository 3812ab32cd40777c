package optim_test

import (
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/golden"
	"github.com/snug-ml/snug/optim"
)

func TestSchedules(t *testing.T) {
	f := golden.Load(t, "optim")
	for name, s := range map[string]optim.Schedule{
		"sched_step":          optim.Step(5, 0.5),
		"sched_multistep":     optim.MultiStep([]int64{3, 9}, 0.1),
		"sched_cosine":        optim.Cosine(15, 0.01),
		"sched_exp":           optim.Exponential(0.9),
		"sched_onecycle":      optim.OneCycle(optim.DefaultOneCycle(20)),
		"sched_linear_warmup": optim.Linear(6, 0.1, 1),
	} {
		lr, _ := f.Tensor(name, "lr")
		base := f.Settings(name)["base_lr"].(float64)
		if len(lr.F) != 20 {
			t.Fatal(name, lr.F)
		}
		for i, want := range lr.F {
			if got := base * s(int64(i)); !(math.Abs(got-want) <= 1e-12*want) {
				t.Errorf("%s: step %d: %v, want %v", name, i, got, want)
			}
		}
	}
}

func TestScheduleParts(t *testing.T) {
	count := func(step int64) float64 { return float64(100 + step) }
	for name, c := range map[string]struct {
		s    optim.Schedule
		want []float64
	}{
		"warm-up":   {optim.Warmup(3, optim.Exponential(0.5)), []float64{0.25, 0.5, 0.75, 1, 0.5, 0.25}},
		"none":      {optim.Warmup(0, count), []float64{100, 101}},
		"sequence":  {optim.Sequence([]int64{2, 3}, optim.Linear(4, 0, 1), optim.Exponential(0), count), []float64{0, 0.25, 1, 100, 101}},
		"chain":     {optim.Chain(optim.Linear(2, 0, 1), optim.Exponential(2), optim.Step(1, 2)), []float64{0, 2, 16, 64}},
		"the end":   {optim.Linear(1, 3, 2), []float64{3, 2, 2, 2}},
		"one cycle": {func(n int64) float64 { return optim.OneCycle(optim.DefaultOneCycle(10))(n+9) * 250000 }, []float64{1, 1, 1}},
	} {
		for i, want := range c.want {
			if got := c.s(int64(i)); !(math.Abs(got-want) <= 1e-9*want) {
				t.Errorf("%s: step %d: %v, want %v", name, i, got, want)
			}
		}
	}
}

// The shortest cycles have a rate, and no NaN, at every step.
func TestShortOneCycle(t *testing.T) {
	for steps := range int64(8) {
		for _, rise := range []float64{0, 0.25, 0.3, 0.5, 1} {
			c := optim.DefaultOneCycle(steps + 1)
			c.Rise = rise
			s := optim.OneCycle(c)
			for i := range steps + 3 {
				if f := s(i); !(f > 0 && f <= 1) {
					t.Errorf("%d steps, rise %v: factor %v at step %d", steps+1, rise, f, i)
				}
			}
		}
	}
}
