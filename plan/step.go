package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/join"
	"github.com/snug-ml/snug/optim"
)

// step runs one, calls done, and undoes it.
func (j *Job) step(ctx context.Context, d *snug.Device, micro int, done func()) (err error) {
	w := optim.NewWindow(j.Optimizer, optim.WindowConfig{})
	var mark *snug.Mark // of buffers and the random position
	restore := func() error { return nil }
	defer func() {
		done()
		err = join.Errors(err, w.Drop())
		if mark != nil {
			mark.Restore()
		}
		err = join.Errors(err, restore())
	}()
	for _, n := range j.sizes(micro) {
		if err := d.Train(ctx, func(s *snug.Scope) error {
			mark = s.Mark(mark)
			return w.Backward(j.Loss(s, n), float64(n))
		}, j.Options...); err != nil {
			return err
		}
	}
	// Up to here no value has changed.
	back, err := j.remember()
	if err != nil {
		return err
	}
	restore = back
	_, err = w.Step()
	return err
}

type counted interface {
	json.Marshaler
	json.Unmarshaler
}

func stepsOf(o optim.Optimizer) (counted, error) {
	c, ok := o.(counted)
	if !ok {
		return nil, fmt.Errorf("plan: the optimizer %T cannot be put back: MarshalJSON and UnmarshalJSON wanted", o)
	}
	return c, nil
}

// remember returns what brings parameters and the optimizer back.
func (j *Job) remember() (restore func() error, err error) {
	steps, err := stepsOf(j.Optimizer)
	if err != nil {
		return nil, err
	}
	text, err := steps.MarshalJSON()
	if err != nil {
		return nil, err
	}
	undo := []func() error{func() error { return steps.UnmarshalJSON(text) }}
	for _, seq := range []func(func(string, *snug.Param) bool){j.Optimizer.Params(), j.Optimizer.State()} {
		for _, p := range seq {
			back, err := valueOf(p)
			if errors.Is(err, snug.ErrNoValues) {
				continue // a dry run has none to lose
			}
			if err != nil {
				return nil, err
			}
			undo = append(undo, back)
		}
	}
	return func() (err error) {
		for _, back := range undo {
			err = join.Errors(err, back())
		}
		return err
	}, nil
}

// valueOf copies p's value to the host, in a type that holds it exactly.
func valueOf(p *snug.Param) (back func() error, err error) {
	switch t := p.DType(); {
	case t == snug.Float32 || t.Half():
		return copied[float32](p)
	case t == snug.Int64:
		return copied[int64](p)
	}
	return copied[float64](p)
}

func copied[T snug.Number](p *snug.Param) (back func() error, err error) {
	v, err := snug.GetParam[T](p)
	return func() error { return snug.SetParam(p, v) }, err
}
