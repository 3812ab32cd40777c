package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// Job is a training step.
type Job struct {
	Optimizer optim.Optimizer // ours, or one with MarshalJSON and UnmarshalJSON for its number of steps
	Batch     int             // samples of one step
	// Loss is the mean over so many samples, whichever. It must not ask a loader for them:
	// it runs many times.
	Loss    func(s *snug.Scope, micro int) *snug.Tensor
	Options []snug.Option // of the scopes that Loss runs in, such as snug.Random
}

// Plan is what Fit has found.
type Plan struct {
	Trial
	Trials []Trial // all that was tried, in order

	option snug.Option
}

// Option is the savers that a step of this plan needs, for its scopes beside the job's own
// options; where it needs none, an Option that changes nothing.
func (p *Plan) Option() snug.Option { return p.option }

// savers come in where not one sample fits without: each costs more time than the one
// before it, and none changes a bit of the results.
func savers(budgetBytes int64) []saver {
	return []saver{
		{"", snug.Option{}},
		{"checkpoint, a quarter of the budget kept", snug.Options(checkpoint.Every(1), checkpoint.Budget(budgetBytes/4))},
		{"checkpoint", checkpoint.Every(1)},
		{"checkpoint, offload", snug.Options(checkpoint.Every(1), offload.Activations(offload.Default()))},
	}
}

type saver struct {
	name   string
	option snug.Option
}

// Fit is the largest micro-batch whose step keeps what the device reserves, for whatever,
// within budgetBytes. Where one sample does not fit, it looks for the largest with memory
// savers, which Option then has. Where none of them is enough, the error is
// memory.ErrOutOfMemory, with the first trial's report of one sample.
func Fit(ctx context.Context, d *snug.Device, budgetBytes int64, j Job) (*Plan, error) {
	if budgetBytes <= 0 {
		return nil, fmt.Errorf("plan: a budget of %d bytes", budgetBytes)
	}
	if err := j.check(); err != nil {
		return nil, err
	}
	limit := d.Memory().Limit()
	defer func() {
		d.Memory().SetLimit(limit)
		d.Memory().EmptyCache()
	}()
	d.Memory().EmptyCache()
	if r := d.Memory().Stats().Reserved; r > budgetBytes {
		return nil, fmt.Errorf("plan: %w: %s are reserved before the step, %s is the budget", memory.ErrOutOfMemory, memory.FormatBytes(r), memory.FormatBytes(budgetBytes))
	}
	d.Memory().SetLimit(min(limit, budgetBytes))
	p := &Plan{}
	var without error
	for _, saver := range savers(budgetBytes) {
		with := j
		with.Options = append(slices.Clone(j.Options), saver.option)
		p.option = saver.option
		err := p.bisect(ctx, d, with, saver.name)
		switch {
		case err == nil:
			return p, nil
		case without == nil && errors.Is(err, memory.ErrOutOfMemory) && ctx.Err() == nil:
			without = err
		case without != nil && !errors.Is(err, memory.ErrOutOfMemory): // such as the job's own checkpoint beside ours
			return nil, fmt.Errorf("%w; with %s: %w", without, saver.name, err)
		case without == nil || ctx.Err() != nil:
			return nil, err
		}
	}
	return nil, without
}

// bisect sets p.Trial to the largest micro-batch that fits.
func (p *Plan) bisect(ctx context.Context, d *snug.Device, j Job, saver string) error {
	var last error // out of memory
	for fits, fails := 0, j.Batch+1; fails-fits > 1; {
		micro := (fits + fails) / 2
		if fits == 0 && fails == j.Batch+1 {
			micro = j.Batch
		}
		t, err := Try(ctx, d, j, micro)
		t.Saver = saver
		switch {
		case err == nil:
			fits, p.Trial = micro, t
		case errors.As(err, &t.OutOfMemory) && micro > 1:
			fails, last = micro, err
		case last != nil && ctx.Err() == nil && t.OutOfMemory == nil: // such as batch norm's, of one sample
			return fmt.Errorf("%w; after %w", err, last)
		default:
			return err
		}
		p.Trials = append(p.Trials, t)
	}
	return nil
}

// Trial is a step that was run. Bytes include all that was on the device before.
type Trial struct {
	Micro       int
	Saver       string                   // what Fit added to the job's options, "" for nothing
	Peak        int64                    // of bytes in blocks
	Reserved    int64                    // at most, of the device: what a limit bounds; later steps may take 1 or 2 % more, if there is room
	OutOfMemory *memory.OutOfMemoryError // in Plan.Trials: why it did not fit; nil: it did
}

// Try runs one step of micro samples at a time and undoes it. Running out of memory is an
// error; the Trial then says how far it got.
func Try(ctx context.Context, d *snug.Device, j Job, micro int) (Trial, error) {
	t := Trial{Micro: micro}
	if err := j.check(); err != nil {
		return t, err
	}
	if micro < 1 || micro > j.Batch {
		return t, fmt.Errorf("plan: micro-batches of %d samples of %d", micro, j.Batch)
	}
	d.Memory().EmptyCache()
	d.Memory().ResetPeak()
	err := j.step(ctx, d, micro, func() {
		peak := d.Memory().Stats().Peak
		t.Peak, t.Reserved = peak.Allocated, peak.Reserved
	})
	if err != nil {
		err = fmt.Errorf("plan: micro-batches of %d samples of %d: %w", micro, j.Batch, err)
	}
	return t, err
}

func (j *Job) check() error {
	if j.Batch < 1 {
		return fmt.Errorf("plan: a batch of %d samples", j.Batch)
	}
	if j.Loss == nil {
		return errors.New("plan: a job without Loss")
	}
	if _, err := stepsOf(j.Optimizer); err != nil {
		return err
	}
	for name, p := range j.Optimizer.Params() {
		if p.HasGrad() {
			return fmt.Errorf("plan: %s has a gradient: %w by a window that has begun", name, snug.ErrInUse)
		}
	}
	return nil
}

// sizes are the micro-batches that differ in what they meet: the first, the second, which
// adds to gradients, and what is left over.
func (j *Job) sizes(micro int) []int {
	s := []int{micro}
	if j.Batch >= 2*micro {
		s = append(s, micro)
	}
	if rest := j.Batch % micro; rest > 0 {
		s = append(s, rest)
	}
	return s
}
