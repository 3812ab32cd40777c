package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/optim"
)

// Loss is a number for a micro-batch, a mean over count samples or tokens: what is
// minimized, or for Evaluate any other figure. A count of 0 says that there is nothing to
// learn from. It may run again for the same samples, after out of memory.
type Loss func(s *snug.Scope, b data.Batch) (mean *snug.Tensor, count float64)

// Trainer takes steps. It belongs to one goroutine, and its fields may change between
// steps.
type Trainer struct {
	Device  *snug.Device
	Window  *optim.Window
	Loss    Loss
	Options []snug.Option // of every micro-batch's scope, such as snug.Random
	Micro   int           // the most samples at a time; 0: all. Out of memory makes it smaller
}

// Result is what a step came to.
type Result struct {
	optim.Result
	Loss    float64 // the mean over Count; NaN where that is 0, and on a dry device
	Micro   int     // samples at a time
	Retried []error // what each retry was for: out of memory
}

// Step takes one step with a batch, which must not change before it returns. It waits for
// the loss of each micro-batch.
func (t *Trainer) Step(ctx context.Context, b data.Batch) (Result, error) {
	if b.Len() == 0 {
		return Result{}, errors.New("train: a batch of no samples")
	}
	micro := smaller(t.Micro, b.Len())
	var retried []error
	for {
		r, again, err := t.once(ctx, b, micro)
		r.Micro, r.Retried = micro, retried
		switch {
		case err == nil && retried != nil:
			t.Micro = micro
		case again && micro == 1:
			err = fmt.Errorf("a micro-batch of one sample: %w", err)
		case again:
			retried = append(retried, err)
			micro = half(micro)
			continue
		case err != nil && retried != nil && ctx.Err() == nil: // such as batch norm's, of one sample
			err = fmt.Errorf("%w; after %w", err, retried[len(retried)-1])
		}
		return r, err
	}
}

// smaller is what micro, 0 for all, means of n samples.
func smaller(micro, n int) int {
	if micro == 0 {
		return n
	}
	return min(micro, n)
}

func half(micro int) int { return (micro + 1) / 2 }

// once takes the step in micro-batches of one size or, on any failure but snug.ErrTorn,
// undoes it; again says that a smaller size may help.
func (t *Trainer) once(ctx context.Context, b data.Batch, micro int) (r Result, again bool, err error) {
	undo := true // if Loss panics, too
	defer func() {
		if !undo {
			return
		}
		again = errors.Is(err, memory.ErrOutOfMemory)
		if e := t.Window.Drop(); e != nil {
			again, err = false, fmt.Errorf("%w; then %w", err, e)
		}
	}()
	var sum float64
	for part := range b.Split(micro) {
		if err := t.Device.Train(ctx, func(s *snug.Scope) error {
			loss, n := t.Loss(s, part)
			if err := t.Window.Backward(loss, n); err != nil || n == 0 {
				return err
			}
			v, err := loss.Item()
			if errors.Is(err, snug.ErrNoValues) {
				err = nil
			}
			sum += n * v
			return err
		}, t.Options...); err != nil {
			undo = !errors.Is(err, snug.ErrTorn)
			return r, false, err
		}
	}
	r.Result, err = t.Window.Step()
	undo = err != nil
	r.Loss = sum / r.Count
	return r, false, err
}
