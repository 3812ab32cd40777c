package optim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/join"
	"github.com/snug-ml/snug/memory"
)

// Optimizer changes parameters by their gradients. Ours also have MarshalJSON and
// UnmarshalJSON for the number of steps, which is all there is beside State.
type Optimizer interface {
	Params() iter.Seq2[string, *snug.Param]
	State() iter.Seq2[string, *snug.Param] // named "conv1.weight.momentum"
	Step() error                           // outside scopes; allocates nothing; frees the gradients
	Steps() int64                          // taken so far, counted for all parameters together
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
	name     string
	params   []*named
	of       map[*snug.Param]*named
	steps    int64
	factor   float64
	args     func(o *base, lr, decay float64) []float64 // for the step o.steps
	rounding Rounding
	scratch  map[*snug.Device]*snug.Param // what kernels work in; no state
	closed   bool
}

type named struct {
	name      string
	p         *snug.Param
	kernel    string
	states    []*snug.Param
	lr, decay float64
}

// rule is what an optimizer adds to the base.
type rule struct {
	name   string // for errors
	kernel string
	states []string
	dtype  snug.DType // of the states
	// layout, if not nil, chooses kernel and states by the parameter.
	layout    func(p *snug.Param) (kernel string, s []state, err error)
	rounding  Rounding
	scratch   func(p *snug.Param) int // how many numbers its kernel works in
	lr, decay float64
	groups    []Group
	args      func(o *base, lr, decay float64) []float64
	// What the config has to keep to, beside rate and decay of 0 or more.
	fractions map[string]float64 // in [0,1)
	aboveZero map[string]float64
	notBelow0 map[string]float64
}

func (r *rule) check() error {
	var errs []error
	check := func(name string, v float64, ok bool, want string) {
		if !ok || math.IsInf(v, 0) {
			errs = append(errs, fmt.Errorf("%s: %s is %v, %s wanted", r.name, name, v, want))
		}
	}
	check("LR", r.lr, r.lr >= 0, "0 or more")
	check("WeightDecay", r.decay, r.decay >= 0, "0 or more")
	for i, g := range r.groups {
		if g.Match == nil {
			errs = append(errs, fmt.Errorf("%s: group %d has no Match", r.name, i))
		}
		check(fmt.Sprintf("group %d's LR", i), g.LR, g.LR >= 0, "0 or more")
		check(fmt.Sprintf("group %d's WeightDecay", i), g.WeightDecay, g.WeightDecay >= 0, "0 or more")
	}
	for _, n := range slices.Sorted(maps.Keys(r.fractions)) {
		check(n, r.fractions[n], r.fractions[n] >= 0 && r.fractions[n] < 1, "one in [0,1)")
	}
	for _, n := range slices.Sorted(maps.Keys(r.aboveZero)) {
		check(n, r.aboveZero[n], r.aboveZero[n] > 0, "more than 0")
	}
	for _, n := range slices.Sorted(maps.Keys(r.notBelow0)) {
		check(n, r.notBelow0[n], r.notBelow0[n] >= 0, "0 or more")
	}
	return join.Errors(errs...)
}

// newBase makes the state at once, all of it or none: what fits now fits at any step.
// Frozen parameters and buffers are left out; one that another optimizer updates is refused,
// until that is closed. The state of 16-bit parameters is float32
// if the config says no less.
func newBase(ps iter.Seq2[string, *snug.Param], r rule) (*base, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	o := &base{name: r.name, of: map[*snug.Param]*named{}, factor: 1, args: r.args, rounding: r.rounding, scratch: map[*snug.Device]*snug.Param{}}
	scratch := map[*snug.Device]int{}
	for name, p := range ps {
		if p.IsBuffer() || p.Frozen() || o.of[p] != nil {
			continue
		}
		if p.Device() == nil {
			o.Close()
			return nil, fmt.Errorf("%s: %s is not on a device: call nn.Init first", r.name, name)
		}
		if err := p.Take(&o.name); err != nil {
			o.Close()
			return nil, fmt.Errorf("%s: %s: %w", r.name, name, err)
		}
		n := &named{name: name, p: p, lr: r.lr, decay: r.decay}
		o.params = append(o.params, n)
		o.of[p] = n
		for _, g := range r.groups {
			if g.Match(name, p) {
				n.lr, n.decay = g.LR, g.WeightDecay
				break
			}
		}
		if r.rounding.Stochastic && p.DType() == snug.Float16 {
			o.Close()
			return nil, fmt.Errorf("%s: %s: %w: it is float16, and stochastic rounding is of bfloat16", r.name, name, snug.ErrDType)
		}
		n.kernel = r.kernel
		states := moments(p, r.dtype, r.states)
		if r.layout != nil {
			var err error
			if n.kernel, states, err = r.layout(p); err != nil {
				o.Close()
				return nil, fmt.Errorf("%s: %s: %w", r.name, name, err)
			}
		}
		for _, s := range states {
			b := snug.NewBuffer(nil, s.shape...)
			b.SetDType(s.dtype) // it fails on a device only
			n.states = append(n.states, b)
		}
		if r.scratch != nil {
			scratch[p.Device()] = max(scratch[p.Device()], r.scratch(p))
		}
		all := func(yield func(string, *snug.Param) bool) {
			for i, s := range n.states {
				if !yield(name+"."+states[i].name, s) {
					return
				}
			}
		}
		if err := p.PlaceStates(all); err != nil {
			o.Close()
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if len(o.params) == 0 {
		return nil, fmt.Errorf("%s: no parameters that are not frozen", r.name)
	}
	for d, n := range scratch {
		b := snug.NewBuffer(nil, n)
		b.SetDType(snug.Float64)
		if err := snug.Place(context.Background(), d, nil, memory.Workspace, maps.All(map[string]*snug.Param{r.name: b})); err != nil {
			o.Close()
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		o.scratch[d] = b
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
	o.closed = true
	for _, n := range o.params {
		n.p.Leave(&o.name)
	}
	for _, s := range o.State() {
		errs = append(errs, s.Close())
	}
	for _, s := range o.scratch {
		errs = append(errs, s.Close())
	}
	return join.Errors(errs...)
}

// MarshalJSON has the number of steps; the rest is State.
func (o *base) MarshalJSON() ([]byte, error) { return json.Marshal(saved{Steps: o.steps}) }

func (o *base) UnmarshalJSON(b []byte) error {
	var v saved
	err := json.Unmarshal(b, &v)
	if err == nil && v.Steps < 0 {
		err = fmt.Errorf("optimizer: %d steps", v.Steps)
	}
	if err == nil {
		o.steps = v.Steps
	}
	return err
}

type saved struct {
	Steps int64 `json:"steps"`
}

// Step looks at everything that could refuse it before it changes anything. A parameter
// without a gradient stays as it is, state included.
func (o *base) Step() error {
	if o.closed {
		return errors.New("step: the optimizer is closed")
	}
	if err := ready(o.Params()); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	o.begin()
	us := make([]snug.Update, 0, len(o.params))
	for _, n := range o.params {
		if n.p.HasGrad() {
			us = append(us, o.update(n))
		}
	}
	if err := o.apply(us); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	return nil
}

// begin (or cancel) and one are Step in parts, for BackwardStep.
func (o *base) begin()  { o.steps++ }
func (o *base) cancel() { o.steps-- }

func (o *base) one(p *snug.Param) error { return o.apply([]snug.Update{o.update(o.of[p])}) }

func (o *base) update(n *named) snug.Update {
	more := n.states
	if s := o.scratch[n.p.Device()]; s != nil {
		more = append(slices.Clip(more), s)
	}
	return snug.Update{Param: n.p, Kernel: n.kernel, Key: o.rounding.key(n.name, o.steps), F: o.args(o, n.lr*o.factor, n.decay), States: more}
}

func (o *base) apply(us []snug.Update) error {
	if err := snug.Updates(us); err != nil {
		return err
	}
	for _, u := range us {
		if err := u.Param.Zero(); err != nil {
			return err
		}
	}
	return nil
}

// wrap keeps a nil *base from becoming an Optimizer that is not nil.
func wrap(o *base, err error) (Optimizer, error) {
	if err != nil {
		return nil, err
	}
	return o, nil
}
