package optim

import (
	"cmp"
	"fmt"
	"iter"
	"math"

	"github.com/snug-ml/snug"
)

// Zero frees gradients, complete or not. Of several errors it returns the first.
func Zero(p iter.Seq2[string, *snug.Param]) error {
	var first error
	for _, p := range p {
		first = cmp.Or(first, p.Zero())
	}
	return first
}

// ClipNorm waits, and scales all gradients down together so that their norm, as one
// vector, is at most max. It returns the norm before. One that is not finite is returned
// with no error, and the gradients stay as they are.
func ClipNorm(p iter.Seq2[string, *snug.Param], max float64) (float64, error) {
	if !(max > 0) {
		return math.NaN(), fmt.Errorf("clip norm: %v, more than 0 wanted", max)
	}
	norm, bad, err := gradNorm(p)
	if err != nil || bad != "" || norm <= max {
		return norm, err
	}
	return norm, scale(p, max/norm)
}

// ClipValue brings each element of the gradients into [-max, max]. A NaN stays.
func ClipValue(p iter.Seq2[string, *snug.Param], max float64) error {
	if !(max > 0) {
		return fmt.Errorf("clip value: %v, more than 0 wanted", max)
	}
	if err := ready(p); err != nil {
		return err
	}
	return each(p, "clamp", -max, max)
}

// gradNorm is that of all gradients as one vector, and the name of the first one that is
// not finite.
func gradNorm(ps iter.Seq2[string, *snug.Param]) (norm float64, bad string, err error) {
	if err := ready(ps); err != nil {
		return math.NaN(), "", err
	}
	var names []string
	var with []*snug.Param
	for name, p := range ps {
		if p.HasGrad() {
			names, with = append(names, name), append(with, p)
		}
	}
	norms, err := snug.GradNorms(with)
	if err != nil {
		return math.NaN(), "", err
	}
	var sum float64
	for i, n := range norms {
		if bad == "" && !finite(n) {
			bad = names[i]
		}
		sum += n * n
	}
	return math.Sqrt(sum), bad, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// ready looks for what would refuse a change, before there is one.
func ready(ps iter.Seq2[string, *snug.Param]) error {
	for _, p := range ps {
		if err := p.Ready(); err != nil {
			return err
		}
	}
	return nil
}

func scale(ps iter.Seq2[string, *snug.Param], by float64) error {
	for _, p := range ps {
		if p.HasGrad() {
			if err := p.ScaleGrad(by); err != nil {
				return err
			}
		}
	}
	return nil
}

// each runs a kernel over every gradient in place.
func each(ps iter.Seq2[string, *snug.Param], kernel string, f ...float64) error {
	for _, p := range ps {
		if p.HasGrad() {
			if err := p.UpdateGrad(kernel, f...); err != nil {
				return err
			}
		}
	}
	return nil
}
