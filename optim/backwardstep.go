package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/snug-ml/snug"
)

// BackwardStep is the last micro-batch's Backward and Step in one, inside the scope: each
// parameter is updated, and its gradient freed, as soon as that is final. The bits are the
// same. A failure of the scope after the first update is snug.ErrTorn.
//
// ClipNorm and a Scaler need the norm of all gradients first. They are refused, but with
// TwoPass: then a first backward pass measures, freeing each gradient at once, and a second
// one updates (as in LOMO: Lv et al., 2023). It costs another backward pass, during which
// all activations stay, and works for windows of one micro-batch only.
func (w *Window) BackwardStep(loss *snug.Tensor, count float64) (Result, error) {
	s := loss.Scope()
	w.begin(loss, count)
	total := w.count + w.open + count
	r := Result{Count: total, Scale: w.scale}
	o, ok := w.o.(interface {
		begin()
		cancel()
		one(*snug.Param) error
	})
	switch {
	case !ok:
		s.Fail("backward step", fmt.Errorf("%T does not step one parameter at a time: use Backward and Step", w.o))
	case w.wholeNorm() && !w.c.TwoPass:
		s.Fail("backward step", errors.New("clipping and scaling need all gradients at once: use Backward and Step, or TwoPass"))
	case w.wholeNorm() && total > count:
		s.Fail("backward step", errors.New("the first of two passes would free the gradients of earlier micro-batches: use Backward and Step"))
	}
	for _, p := range w.o.Params() {
		if err := p.Ready(); errors.Is(err, snug.ErrIncomplete) {
			s.Fail("backward step", err)
		}
	}
	if s.Err() != nil {
		return r, s.Err()
	}
	if s.OnSuccess(w.end); total == 0 {
		return r, nil
	}
	by := 1 / (total * w.scale)
	if w.wholeNorm() {
		norm, bad, err := w.measure(loss, count)
		if err == nil {
			by, err = w.judge(&r, norm, by, bad)
		}
		s.Fail("backward step", err)
		if s.Err() != nil || bad != "" {
			return r, s.Err()
		}
	}
	w.rate()
	o.begin()
	step := func(p *snug.Param) error {
		if !p.HasGrad() {
			return nil
		}
		if err := p.ScaleGrad(by); err != nil {
			return err
		}
		return o.one(p)
	}
	if count > 0 {
		loss.Backward(snug.Into(w.o.Params()), snug.Weight(count*w.scale), snug.OnGrad(step))
	}
	for _, p := range w.o.Params() { // what only earlier micro-batches have reached
		if p.HasGrad() && s.Err() == nil {
			s.Fail("backward step", p.Finish(s, step))
		}
	}
	if err := s.Err(); err != nil {
		if !errors.Is(err, snug.ErrTorn) {
			o.cancel()
		}
		return r, err
	}
	r.Stepped = true
	return r, nil
}

// measure is gradNorm by a backward pass that keeps no gradient. The sum has the order of
// Step's.
func (w *Window) measure(loss *snug.Tensor, count float64) (norm float64, bad string, err error) {
	norms := map[*snug.Param]float64{}
	err = loss.Backward(snug.Into(w.o.Params()), snug.Weight(count*w.scale), snug.Retain(), snug.OnGrad(func(p *snug.Param) error {
		if !p.HasGrad() {
			return nil
		}
		n, err := p.GradNorm()
		if err != nil {
			return err
		}
		norms[p] = n
		return p.Zero()
	}))
	var sum float64
	for name, p := range w.o.Params() {
		n, ok := norms[p]
		if bad == "" && ok && !finite(n) {
			bad = name
		}
		sum += n * n
	}
	return math.Sqrt(sum), bad, err
}
