package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/memory"
)

// Loop is steps over a loader's epochs.
type Loop struct {
	Trainer *Trainer
	Data    *data.Loader
	Batch   int   // samples of a step
	Epochs  int64 // counted by the loader's position, so that a resumed one does what is left

	OnStep  func(Progress) error                        // after each step; may be nil
	OnEpoch func(ctx context.Context, p Progress) error // after each epoch, to evaluate or save; may be nil
}

// Progress is how far a Loop is.
type Progress struct {
	Epoch  int64 // of the step, from 0
	Steps  int64 // of this Run
	Result       // of the last step
	// Of this epoch in this Run:
	MeanLoss         float64 // over all samples or tokens; NaN before the first
	SamplesPerSecond float64 // loading and OnStep included
	Memory           memory.Stats
}

// Run ends with the last epoch or the first error, of the functions too. What a step that
// failed or was cancelled should have learned from is given again to the next Run.
func (l Loop) Run(ctx context.Context) error {
	p := Progress{}
	for l.Data.State().Epoch < l.Epochs {
		if err := l.epoch(ctx, &p); err != nil {
			return err
		}
		if l.OnEpoch != nil {
			if err := l.OnEpoch(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l Loop) epoch(ctx context.Context, p *Progress) error {
	at := l.Data.State() // where the batch under way begins
	p.Epoch, p.MeanLoss = at.Epoch, math.NaN()
	var sum, count float64
	var failed error
	samples, begin := 0, time.Now()
	for b, err := range l.Data.Batches(ctx, l.Batch) {
		if err != nil {
			return err
		}
		if p.Result, failed = l.Trainer.Step(ctx, b); failed != nil {
			break
		}
		at = l.Data.State()
		if p.Stepped {
			p.Steps++
		}
		if p.Count > 0 {
			sum, count = sum+p.Loss*p.Count, count+p.Count
			p.MeanLoss = sum / count
		}
		samples += b.Len()
		p.SamplesPerSecond = float64(samples) / time.Since(begin).Seconds()
		p.Memory = l.Trainer.Device.Memory().Stats()
		if l.OnStep != nil {
			if err := l.OnStep(*p); err != nil {
				return err
			}
		}
	}
	if failed != nil {
		if err := l.Data.SetState(at); err != nil {
			return fmt.Errorf("%w; then %w", failed, err)
		}
	}
	return failed
}
