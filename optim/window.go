package optim

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/snug-ml/snug"
)

// Scaler is a loss scale, of 16-bit floats; amp.Scaler is one. Several windows may share
// it.
type Scaler interface {
	Scale() float64
	Report(scale float64, finite bool) error // what a window found under scale
}

// WindowConfig: zero values are none.
type WindowConfig struct {
	ClipNorm float64 // the greatest norm of a window's gradients, as one vector
	Schedule Schedule
	Scaler   Scaler
	TwoPass  bool // BackwardStep clips and unscales by a backward pass of its own, which only measures
}

// Result is what a window came to.
type Result struct {
	Stepped bool
	Count   float64 // of all micro-batches
	Norm    float64 // of the gradients, unscaled and before clipping; 0 where nobody asked
	Scale   float64 // that the losses were multiplied by
}

// Window is what lies between two steps of an optimizer: any number of micro-batches, each
// a mean over count samples or tokens, whose gradients become one mean over all. It belongs
// to one goroutine.
type Window struct {
	o     Optimizer
	c     WindowConfig
	mark  *snug.Mark // where it began; nil: it has not
	scale float64
	count float64     // of scopes that have succeeded
	in    *snug.Scope // the last one
	open  float64     // its count, until it has succeeded
	bad   bool        // a loss was not finite; only looked at where the scale cannot fall
}

// NewWindow makes a window over an optimizer's parameters, one after the other.
func NewWindow(o Optimizer, c WindowConfig) *Window { return &Window{o: o, c: c, scale: 1} }

// begin notes, at the first micro-batch, where the window began.
func (w *Window) begin(loss *snug.Tensor, count float64) {
	s := loss.Scope()
	if w.mark == nil && w.c.Scaler != nil {
		w.scale = w.c.Scaler.Scale()
	}
	w.mark = s.Mark(w.mark)
	if w.in != s {
		w.in, w.open = s, 0
	}
	if !(count >= 0) || !finite(count) {
		s.Fail("window", fmt.Errorf("count %v, a number of samples wanted", count))
	}
}

// Backward adds count times loss's gradients, to the optimizer's parameters only. A count
// of 0 (all labels masked) adds nothing, whatever the loss is.
func (w *Window) Backward(loss *snug.Tensor, count float64) error {
	s := loss.Scope()
	if w.begin(loss, count); s.Err() != nil || count == 0 {
		return s.Err()
	}
	if w.c.Scaler != nil && w.scale <= 1 {
		if v, err := loss.Item(); err == nil && !finite(v) {
			w.bad = true
		}
	}
	w.open += count
	s.OnSuccess(func() { w.count, w.open = w.count+count, w.open-count })
	return loss.Backward(snug.Into(w.o.Params()), snug.Weight(count*w.scale))
}

// Step divides by the count and the scale, clips, steps and schedules. Without counts, or
// with a gradient that is not finite under a Scaler, it leaves the parameters and the
// schedule alone. Where such a gradient meets ClipNorm without a Scaler, or a scale that
// cannot fall, that is an error with the gradient's name, and the window stays as it is,
// for Drop.
func (w *Window) Step() (Result, error) {
	r := Result{Count: w.count, Scale: w.scale}
	if err := ready(w.o.Params()); err != nil {
		return r, fmt.Errorf("window: %w", err)
	}
	if w.count == 0 {
		w.end()
		return r, nil
	}
	by := 1 / (w.count * w.scale)
	if w.wholeNorm() {
		norm, bad, err := gradNorm(w.o.Params())
		if err == nil {
			by, err = w.judge(&r, norm, by, bad)
		}
		if err != nil {
			return r, fmt.Errorf("window: %w", err)
		}
		if bad != "" {
			return r, w.zero()
		}
	}
	if err := scale(w.o.Params(), by); err != nil {
		return r, fmt.Errorf("window: %w", err)
	}
	w.rate()
	if err := w.o.Step(); err != nil {
		return r, fmt.Errorf("window: %w", err)
	}
	r.Stepped = true
	w.end()
	return r, nil
}

// wholeNorm reports whether a step needs the norm of all gradients before it begins.
func (w *Window) wholeNorm() bool { return w.c.ClipNorm > 0 || w.c.Scaler != nil }

// judge takes the norm of all gradients and the name of one that is not finite, and gives
// what gradients are multiplied by in the end.
func (w *Window) judge(r *Result, norm, by float64, bad string) (float64, error) {
	r.Norm = norm * by
	var err error
	if w.c.Scaler != nil {
		err = w.c.Scaler.Report(w.scale, bad == "")
	} else if bad != "" {
		err = errors.New("a gradient is not finite")
	}
	if err != nil {
		return by, fmt.Errorf("%w; the first gradient is that of %s%s", err, bad, w.loss())
	}
	if w.c.ClipNorm > 0 && r.Norm > w.c.ClipNorm {
		by *= w.c.ClipNorm / r.Norm
	}
	return by, nil
}

// loss says what is known of it.
func (w *Window) loss() string {
	switch {
	case w.c.Scaler == nil:
		return ""
	case w.bad:
		return "; the loss was not finite in forward either"
	}
	return "; the loss was finite in forward"
}

func (w *Window) rate() {
	if w.c.Schedule != nil {
		w.o.SetRate(w.c.Schedule(w.o.Steps()))
	}
}

// Drop undoes the window: gradients, buffers and random position as at its start.
func (w *Window) Drop() error {
	for _, p := range w.o.Params() {
		if err := p.Ready(); errors.Is(err, snug.ErrInUse) {
			return fmt.Errorf("drop: %w", err)
		}
	}
	if w.mark != nil {
		w.mark.Restore()
	}
	return w.zero()
}

func (w *Window) zero() error {
	err := Zero(w.o.Params())
	w.end()
	return err
}

func (w *Window) end() {
	if w.mark != nil {
		w.mark.Release()
	}
	w.mark, w.scale, w.count, w.in, w.open, w.bad = nil, 1, 0, nil, 0, false
}

// State is the optimizer's; with MarshalJSON it is all that is to be saved between windows.
func (w *Window) State() iter.Seq2[string, *snug.Param] { return w.o.State() }

type savedWindow struct {
	Optimizer json.RawMessage `json:"optimizer"`
	Scaler    json.RawMessage `json:"scaler,omitempty"`
}

// MarshalJSON has the numbers of the optimizer and the scaler. In the middle of a window it
// is an error: its gradients are not saved.
func (w *Window) MarshalJSON() ([]byte, error) {
	if w.mark != nil {
		return nil, errors.New("window: it has begun: save after Step or Drop")
	}
	var v savedWindow
	var err error
	if v.Optimizer, err = json.Marshal(w.o); err == nil && w.c.Scaler != nil {
		v.Scaler, err = json.Marshal(w.c.Scaler)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func (w *Window) UnmarshalJSON(b []byte) error {
	var v savedWindow
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch {
	case w.mark != nil:
		return errors.New("window: it has begun: load after Step or Drop")
	case (v.Scaler == nil) != (w.c.Scaler == nil):
		return fmt.Errorf("window: one of the saved window and this one has a scaler")
	}
	if err := json.Unmarshal(v.Optimizer, w.o); err != nil || v.Scaler == nil {
		return err
	}
	return json.Unmarshal(v.Scaler, w.c.Scaler)
}
