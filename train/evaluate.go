package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/memory"
)

// Evaluate is the mean of a figure over one epoch of a loader, from its start, weighed by
// the counts; NaN where these are 0, and on failure. Nothing is recorded, and layers are
// not in training mode. At most size samples run at a time, fewer after out of memory. It
// waits for each figure.
func Evaluate(ctx context.Context, d *snug.Device, l *data.Loader, size int, figure Loss, o ...snug.Option) (float64, error) {
	e := evaluation{dev: d, figure: figure, options: o, micro: size}
	err := l.SetState(data.LoaderState{Epoch: l.State().Epoch})
	if err == nil {
		err = e.all(ctx, l, size)
	}
	if err != nil {
		return math.NaN(), fmt.Errorf("evaluate: %w", err)
	}
	return e.sum / e.count, nil
}

type evaluation struct {
	dev        *snug.Device
	figure     Loss
	options    []snug.Option
	micro      int
	sum, count float64
}

func (e *evaluation) all(ctx context.Context, l *data.Loader, size int) error {
	for b, err := range l.Batches(ctx, size) {
		if err == nil {
			err = e.add(ctx, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add counts each sample once: only what did not fit is cut and run again.
func (e *evaluation) add(ctx context.Context, b data.Batch) error {
	if b.Len() <= e.micro {
		err := e.dev.Infer(ctx, func(s *snug.Scope) error {
			mean, n := e.figure(s, b)
			if n == 0 {
				return s.Err()
			}
			v, err := mean.Item()
			if err == nil {
				e.sum, e.count = e.sum+n*v, e.count+n
			}
			return err
		}, e.options...)
		if !errors.Is(err, memory.ErrOutOfMemory) || b.Len() == 1 {
			return err
		}
		e.micro = half(b.Len())
	}
	for part := range b.Split(e.micro) {
		if err := e.add(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
