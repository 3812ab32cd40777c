package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/snug-ml/snug"
)


// Scaler is what amp.Scaler is.
type Scaler interface {
	Scale() float64
	Report(scale float64, finite bool) error
}

// WindowConfig: zero values are none.
type WindowConfig struct {
	ClipNorm float64
	Schedule Schedule
	Scaler   Scaler
}

type Result struct {
	Stepped            bool
	Count, Norm, Scale float64
}

// Window is what lies between two steps of an optimizer: any number of micro-batches,
// each a mean over count samples, whose gradients become one mean over all.
type Window struct {
	o     Optimizer
	c     WindowConfig
	count float64
	scale float64
	mark  *snug.Mark
}

func NewWindow(o Optimizer, c WindowConfig) *Window { return &Window{o: o, c: c, scale: 1} }

// open notes, at the first micro-batch, where the window began.
func (w *Window) open(loss *snug.Tensor) {
	if w.mark == nil && w.c.Scaler != nil {
		w.scale = w.c.Scaler.Scale()
	}
	w.mark = loss.Scope().Mark(w.mark)
}

// Backward adds count times loss's gradients, to the optimizer's parameters only. A
// count of 0 (all labels masked) adds nothing.
func (w *Window) Backward(loss *snug.Tensor, count float64) error {
	s := loss.Scope()
	if w.open(loss); count == 0 {
		return s.Err()
	}
	s.OnSuccess(func() { w.count += count })
	return loss.Backward(snug.Into(w.o.Params()), snug.Weight(count*w.scale))
}

// Step divides by the count and the scale, clips, steps and schedules. Without counts,
// or with a gradient that is not finite under a Scaler, it changes nothing but the
// scale.
func (w *Window) Step() (Result, error) {
	r := Result{Count: w.count, Scale: w.scale}
	if w.count == 0 {
		w.end()
		return r, nil
	}
	for _, p := range w.o.Params() {
		if err := p.Ready(); err != nil {
			return r, err
		}
	}
	by := 1 / (w.count * w.scale)
	if w.c.ClipNorm > 0 || w.c.Scaler != nil {
		bad, err := w.norm(&r, by)
		if err != nil {
			return r, err
		}
		if w.c.Scaler != nil {
			if err := w.c.Scaler.Report(w.scale, bad == ""); err != nil {
				return r, fmt.Errorf("%w; first gradient: %s", err, bad)
			}
			if bad != "" {
				return r, w.zero()
			}
		}
		if w.c.ClipNorm > 0 && r.Norm > w.c.ClipNorm {
			by *= w.c.ClipNorm / r.Norm
		}
	}
	w.rate()
	for _, p := range w.o.Params() {
		if p.HasGrad() {
			if err := p.UpdateGrad("scale", by); err != nil {
				return r, err
			}
		}
	}
	r.Stepped = true
	err := w.o.Step()
	w.end()
	return r, err
}

func (w *Window) norm(r *Result, by float64) (bad string, err error) {
	var sum float64
	for name, p := range w.o.Params() {
		if !p.HasGrad() {
			continue
		}
		n, err := p.GradNorm()
		if err != nil {
			return "", err
		}
		if bad == "" && (math.IsNaN(n) || math.IsInf(n, 0)) {
			bad = name
		}
		sum += n * n
	}
	r.Norm = math.Sqrt(sum) * by
	return bad, nil
}

func (w *Window) rate() {
	if w.c.Schedule != nil {
		w.o.SetRate(w.c.Schedule(w.o.Steps()))
	}
}

// BackwardStep is Backward for the last micro-batch and Step in one: each parameter is
// updated, and its gradient freed, as soon as that is final. The same bits.
func (w *Window) BackwardStep(loss *snug.Tensor, count float64) (Result, error) {
	s := loss.Scope()
	w.open(loss)
	total := w.count + count
	r := Result{Count: total, Scale: 1}
	o, ok := w.o.(interface {
		begin()
		cancel()
		one(*snug.Param) error
	})
	if w.c.ClipNorm > 0 || w.c.Scaler != nil || !ok {
		err := errors.New("clipping and scaling need all gradients at once, or the optimizer cannot step in parts")
		s.Fail("backward step", err)
		return r, s.Err()
	}
	if total == 0 {
		s.OnSuccess(w.end)
		return r, s.Err()
	}
	for _, p := range w.o.Params() {
		if p.HasGrad() && p.Ready() != nil && errors.Is(p.Ready(), snug.ErrIncomplete) {
			s.Fail("backward step", p.Ready())
			return r, s.Err()
		}
	}
	w.rate()
	o.begin()
	step := func(p *snug.Param) error {
		if !p.HasGrad() {
			return nil
		}
		if err := p.UpdateGrad("scale", 1/total); err != nil {
			return err
		}
		return o.one(p)
	}
	err := loss.Backward(snug.Into(w.o.Params()), snug.Weight(count), snug.OnGrad(step))
	if err != nil {
		if !errors.Is(err, snug.ErrTorn) {
			o.cancel()
		}
		return r, err
	}
	for _, p := range w.o.Params() { // what only earlier micro-batches reached
		if p.HasGrad() {
			if err := p.Finish(s, step); err != nil {
				s.Fail("backward step", err)
				return r, s.Err()
			}
		}
	}
	s.OnSuccess(w.end)
	r.Stepped = true
	return r, nil
}

// Drop undoes the window: gradients, buffers and random position as at its start.
func (w *Window) Drop() error {
	if w.mark != nil {
		w.mark.Restore()
	}
	return w.zero()
}

func (w *Window) zero() error {
	var errs []error
	for _, p := range w.o.Params() {
		errs = append(errs, p.Zero())
	}
	w.end()
	return errors.Join(errs...)
}

func (w *Window) end() {
	if w.mark != nil {
		w.mark.Release()
	}
	w.mark, w.count, w.scale = nil, 0, 1
}
