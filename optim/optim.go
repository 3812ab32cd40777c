// Package optim has optimizers, in order of increasing complexity, and the window
// that accumulates, scales, clips and schedules around them.
package optim

import (
	"context"
	"iter"
	"math"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
)

type Optimizer interface {
	Params() iter.Seq2[string, *snug.Param]
	State() iter.Seq2[string, *snug.Param]
	Step() error            // outside scopes; frees the gradients
	Steps() int64           // taken so far
	SetRate(factor float64) // of its own rate
	Close() error
}

// base is what optimizers share: one kernel over a parameter and its states.
type base struct {
	params []named
	of     map[*snug.Param][]*snug.Param // its states
	steps  int64
	factor float64
	kernel string
	args   func(o *base) []float64
}

type named struct {
	name   string
	p      *snug.Param
	states []*snug.Param
}

// newBase makes the state at once, all of it or none: what fits now fits at any step.
func newBase(ps iter.Seq2[string, *snug.Param], kernel string, states []string, args func(*base) []float64) (*base, error) {
	o := &base{of: map[*snug.Param][]*snug.Param{}, factor: 1, kernel: kernel, args: args}
	for name, p := range ps {
		if p.IsBuffer() || p.Frozen() {
			continue
		}
		n := named{name: name, p: p}
		for range states {
			n.states = append(n.states, snug.NewBuffer(snug.Const(0), p.Shape()...))
		}
		o.params = append(o.params, n)
		o.of[p] = n.states
	}
	for _, n := range o.params {
		one := func(yield func(string, *snug.Param) bool) {
			for i, s := range n.states {
				if !yield(n.name+"."+states[i], s) {
					return
				}
			}
		}
		if err := snug.Place(context.Background(), n.p.Device(), nil, memory.OptimizerState, one); err != nil {
			o.Close()
			return nil, err
		}
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

func (o *base) Steps() int64      { return o.steps }
func (o *base) SetRate(f float64) { o.factor = f }

func (o *base) Close() error {
	for _, s := range o.State() {
		s.Close()
	}
	return nil
}

// Step looks at everything that could refuse it before it changes anything.
func (o *base) Step() error {
	for _, n := range o.params {
		if err := n.p.Ready(); err != nil {
			return err
		}
	}
	o.begin()
	for _, n := range o.params {
		if err := o.one(n.p); err != nil {
			return err
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
	if err := p.Update(o.kernel, o.args(o), o.of[p]...); err != nil {
		return err
	}
	return p.Zero()
}

// SGDConfig is in units of the gradient; there is no momentum here.
type SGDConfig struct{ LR, WeightDecay float64 }

func NewSGD(ps iter.Seq2[string, *snug.Param], c SGDConfig) (Optimizer, error) {
	return wrap(newBase(ps, "sgd", nil, func(o *base) []float64 { return []float64{c.LR * o.factor, c.WeightDecay} }))
}

// AdamWConfig as in Loshchilov and Hutter, 2019.
type AdamWConfig struct{ LR, WeightDecay, Beta1, Beta2, Eps float64 }

func DefaultAdamW() AdamWConfig { return AdamWConfig{1e-3, 1e-2, 0.9, 0.999, 1e-8} }

func NewAdamW(ps iter.Seq2[string, *snug.Param], c AdamWConfig) (Optimizer, error) {
	return wrap(newBase(ps, "adamw", []string{"m", "v"}, func(o *base) []float64 {
		t := float64(o.steps)
		return []float64{c.LR * o.factor, c.WeightDecay, c.Beta1, c.Beta2, c.Eps, 1 - math.Pow(c.Beta1, t), 1 - math.Pow(c.Beta2, t)}
	}))
}

func wrap(o *base, err error) (Optimizer, error) {
	if err != nil {
		return nil, err
	}
	return o, nil
}
