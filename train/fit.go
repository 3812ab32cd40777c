package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/internal/join"
	"github.com/snug-ml/snug/optim"
	"github.com/snug-ml/snug/plan"
)

// Fit sets Micro to the largest size with which a step of batch samples keeps what the
// device reserves within budgetBytes, by plan.Fit; o is the Window's optimizer. The samples
// are the first ones of the loader's epoch. Where the plan has savers, Options has them from
// then on. Nothing else changes, and on failure nothing.
func (t *Trainer) Fit(ctx context.Context, budgetBytes int64, o optim.Optimizer, l *data.Loader, batch int) (*plan.Plan, error) {
	b, err := first(ctx, l, batch)
	if err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	p, err := plan.Fit(ctx, t.Device, budgetBytes, plan.Job{
		Optimizer: o,
		Batch:     b.Len(),
		Loss: func(s *snug.Scope, micro int) (loss *snug.Tensor) {
			for part := range b.Split(micro) {
				loss, _ = t.Loss(s, part)
				break
			}
			return loss
		},
		Options: t.Options,
	})
	if err == nil {
		t.Micro = p.Micro
		t.Options = append(slices.Clone(t.Options), p.Option())
	}
	return p, err
}

// first is a copy of an epoch's first batch; the loader's position stays.
func first(ctx context.Context, l *data.Loader, batch int) (first data.Batch, err error) {
	at := l.State()
	if err := l.SetState(data.LoaderState{Epoch: at.Epoch}); err != nil {
		return first, err
	}
	defer func() { err = join.Errors(err, l.SetState(at)) }()
	for b, err := range l.Batches(ctx, batch) {
		return b.Clone(), err
	}
	return first, errors.New("an epoch without a batch")
}
