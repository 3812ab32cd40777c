package optim

import (
	"fmt"
	"math"
)

// Schedule is a factor on each group's own rate for a step, counted from 0; pure, so there
// is nothing to save. Constructors panic on lengths below 1.
type Schedule func(step int64) float64

// Step multiplies the rate by gamma every so many steps.
func Step(every int64, gamma float64) Schedule {
	long("Step", every)
	return func(step int64) float64 { return math.Pow(gamma, float64(step/every)) }
}

// MultiStep multiplies the rate by gamma at each milestone.
func MultiStep(milestones []int64, gamma float64) Schedule {
	return func(step int64) float64 {
		n := 0
		for _, m := range milestones {
			if step >= m {
				n++
			}
		}
		return math.Pow(gamma, float64(n))
	}
}

// Exponential is gamma to the power of the step.
func Exponential(gamma float64) Schedule {
	return func(step int64) float64 { return math.Pow(gamma, float64(step)) }
}

// Cosine falls from 1 to min in steps steps, along half a cosine (Loshchilov and Hutter,
// 2017). As in PyTorch it rises again after that.
func Cosine(steps int64, min float64) Schedule {
	long("Cosine", steps)
	return func(step int64) float64 {
		return min + (1-min)*(1+math.Cos(math.Pi*float64(step)/float64(steps)))/2
	}
}

// Linear goes from one factor to another in steps steps, and stays there.
func Linear(steps int64, from, to float64) Schedule {
	long("Linear", steps)
	return func(step int64) float64 {
		return from + (to-from)*float64(min(step, steps))/float64(steps)
	}
}

// Warmup rises in even steps, 1/(steps+1), 2/(steps+1), …, to then(0), which counts its own
// steps from the end of the warm-up.
func Warmup(steps int64, then Schedule) Schedule {
	return func(step int64) float64 {
		if step < steps {
			return float64(step+1) / float64(steps+1) * then(0)
		}
		return then(step - steps)
	}
}

// OneCycleConfig has factors on a rate that is the cycle's greatest.
type OneCycleConfig struct {
	Steps int64   `json:"steps"` // of the whole cycle
	Rise  float64 `json:"rise"`  // the part of it that rises
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// DefaultOneCycle is PyTorch's.
func DefaultOneCycle(steps int64) OneCycleConfig {
	return OneCycleConfig{Steps: steps, Rise: 0.3, Start: 1. / 25, End: 1. / 25 / 1e4}
}

// OneCycle rises from Start to 1 and falls to End, along half a cosine each (Smith and
// Topin, 2018). It stays at End.
func OneCycle(c OneCycleConfig) Schedule {
	long("OneCycle", c.Steps)
	top, last := c.Rise*float64(c.Steps)-1, float64(c.Steps-1)
	between := func(from, to, part float64) float64 { return to + (from-to)*(1+math.Cos(math.Pi*part))/2 }
	return func(step int64) float64 {
		t := min(float64(step), last)
		if t < top {
			return between(c.Start, 1, t/top)
		}
		if t == top || last <= top {
			return 1
		}
		return between(1, c.End, (t-top)/(last-top))
	}
}

// Sequence is one schedule after the other: the next begins, from its step 0, at the next
// milestone, of which there is one less.
func Sequence(milestones []int64, schedules ...Schedule) Schedule {
	if len(milestones) != len(schedules)-1 {
		panic(fmt.Sprintf("optim: %d milestones between %d schedules", len(milestones), len(schedules)))
	}
	return func(step int64) float64 {
		for i := len(milestones) - 1; i >= 0; i-- {
			if step >= milestones[i] {
				return schedules[i+1](step - milestones[i])
			}
		}
		return schedules[0](step)
	}
}

// Chain is the product of schedules.
func Chain(schedules ...Schedule) Schedule {
	return func(step int64) float64 {
		f := 1.0
		for _, s := range schedules {
			f *= s(step)
		}
		return f
	}
}

func long(name string, steps int64) {
	if steps < 1 {
		panic(fmt.Sprintf("optim: %s over %d steps", name, steps))
	}
}
