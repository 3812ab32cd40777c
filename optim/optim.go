package optim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
)

// Optimizer changes parameters by their gradients.
type Optimizer interface {
	Params() iter.Seq2[string, *snug.Param]
	State() iter.Seq2[string, *snug.Param] // named "conv1.weight.momentum"
	Step() error                           // outside scopes; allocates nothing; frees the gradients
	Steps() int64                          // taken so far
	SetRate(factor float64)                // of each group's own rate
	Close() error                          // frees the state; it may be called again
}

// Group gives the parameters that Match accepts a rate and a decay of their own. The
// first group that matches counts; what no group matches has the config's.
type Group struct {
	Match           func(name string, p *snug.Param) bool
	LR, WeightDecay float64
}

// base is what optimizers share: one kernel over a parameter and its states.
type base struct {
	params []*named
	of     map[*snug.Param]*named
	steps  int64
	factor float64
	kernel string
	args   func(o *base, lr, decay float64) []float64 // for the step o.steps
}

type named struct {
	name      string
	p         *snug.Param
	states    []*snug.Param
	lr, decay float64
}

// rule is what an optimizer adds to the base.
type rule struct {
	name       string // for errors
	kernel     string
	states     []string
	lr, decay  float64
	groups     []Group
	args       func(o *base, lr, decay float64) []float64
	fractions  map[string]float64 // must be in [0,1)
	aboveZero  map[string]float64
	notBelow0s map[string]float64
}

func (r *rule) check() error {
	var errs []error
	bad := func(name string, v float64, want string) {
		errs = append(errs, fmt.Errorf("%s: %s is %v, %s wanted", r.name, name, v, want))
	}
	zero := map[string]float64{"LR": r.lr, "WeightDecay": r.decay}
	for i, g := range r.groups {
		if g.Match == nil {
			errs = append(errs, fmt.Errorf("%s: group %d has no Match", r.name, i))
		}
		zero[fmt.Sprintf("group %d's LR", i)], zero[fmt.Sprintf("group %d's WeightDecay", i)] = g.LR, g.WeightDecay
	}
	for _, m := range []map[string]float64{zero, r.notBelow0s} {
		for n, v := range m {
			if !(v >= 0) || math.IsInf(v, 0) {
				bad(n, v, "0 or more")
			}
		}
	}
	for n, v := range r.fractions {
		if !(v >= 0 && v < 1) {
			bad(n, v, "one in [0,1)")
		}
	}
	for n, v := range r.aboveZero {
		if !(v > 0) || math.IsInf(v, 0) {
			bad(n, v, "more than 0")
		}
	}
	return errors.Join(errs...)
}

// newBase makes the state at once, all of it or none: what fits now fits at any step.
// Frozen parameters and buffers are left out.
func newBase(ps iter.Seq2[string, *snug.Param], r rule) (*base, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	o := &base{of: map[*snug.Param]*named{}, factor: 1, kernel: r.kernel, args: r.args}
	for name, p := range ps {
		if p.IsBuffer() || p.Frozen() || o.of[p] != nil {
			continue
		}
		if p.Device() == nil {
			o.Close()
			return nil, fmt.Errorf("%s: %s is not on a device: call nn.Init first", r.name, name)
		}
		n := &named{name: name, p: p, lr: r.lr, decay: r.decay}
		for _, g := range r.groups {
			if g.Match(name, p) {
				n.lr, n.decay = g.LR, g.WeightDecay
				break
			}
		}
		for range r.states {
			s := snug.NewBuffer(nil, p.Shape()...)
			if err := s.SetDType(p.DType()); err != nil {
				return nil, err
			}
			n.states = append(n.states, s)
		}
		o.params = append(o.params, n)
		o.of[p] = n
		states := func(yield func(string, *snug.Param) bool) {
			for i, s := range n.states {
				if !yield(name+"."+r.states[i], s) {
					return
				}
			}
		}
		if err := snug.Place(context.Background(), p.Device(), nil, memory.OptimizerState, states); err != nil {
			o.Close()
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if len(o.params) == 0 {
		return nil, fmt.Errorf("%s: no parameters that are not frozen", r.name)
	}
	return o, nil
}

func (o *base) Params() iter.Seq2[string, *snug.Param] {
	return func(yield func(string, *snug.Param) bool) {
		for _, n := range o.params {
			if !yield(n.name, n.p) {
				return
			}
		}
	}
}

func (o *base) State() iter.Seq2[string, *snug.Param] {
	return func(yield func(string, *snug.Param) bool) {
		for _, n := range o.params {
			for _, s := range n.states {
				if !yield(s.Name(), s) {
					return
				}
			}
		}
	}
}

func (o *base) Steps() int64           { return o.steps }
func (o *base) SetRate(factor float64) { o.factor = factor }

func (o *base) Close() error {
	var errs []error
	for _, s := range o.State() {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Step looks at everything that could refuse it before it changes anything.
func (o *base) Step() error {
	for _, n := range o.params {
		if err := n.p.Ready(); err != nil {
			return fmt.Errorf("step: %w", err)
		}
	}
	o.begin()
	for _, n := range o.params {
		if err := o.one(n.p); err != nil {
			return fmt.Errorf("step: %w", err)
		}
	}
	return nil
}

// begin (or cancel) and one are Step in parts, for BackwardStep.
func (o *base) begin()  { o.steps++ }
func (o *base) cancel() { o.steps-- }

func (o *base) one(p *snug.Param) error {
	if !p.HasGrad() {
		return nil
	}
	n := o.of[p]
	if err := p.Update(o.kernel, o.args(o, n.lr*o.factor, n.decay), n.states...); err != nil {
		return err
	}
	return p.Zero()
}

// wrap keeps a nil *base from becoming an Optimizer that is not nil.
func wrap(o *base, err error) (Optimizer, error) {
	if err != nil {
		return nil, err
	}
	return o, nil
}
