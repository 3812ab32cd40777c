package snug

import (
	"cmp"
	"fmt"
	"slices"
)

// apart refuses an in-place write whose result would depend on the order of elements:
// onto an element twice, or onto one that is read for another.
func (t *Tensor) apart(in []*Tensor) error {
	for i, d := range t.shape {
		if d > 1 && t.strides[i] == 0 {
			return fmt.Errorf("%w: an expanded view has several elements in one place", ErrInUse)
		}
	}
	for _, o := range in {
		same := o.off == t.off && slices.Equal(o.shape, t.shape) && slices.Equal(o.strides, t.strides)
		if o.st == t.st && !same && overlap(t, o) {
			return fmt.Errorf("%w: it reads elements that it writes elsewhere; use a copy", ErrInUse)
		}
	}
	return nil
}

// overlap reports whether two views of one storage have an element in common: whether the
// difference of two sums of index·stride can be that of their offsets.
func overlap(a, b *Tensor) bool {
	if a.Len() == 0 || b.Len() == 0 {
		return false
	}
	type term struct{ stride, lo, hi int } // of one index of a, less one of b
	var terms []term
	add := func(stride, lo, hi int) {
		if i := slices.IndexFunc(terms, func(t term) bool { return t.stride == stride }); i >= 0 {
			terms[i].lo += lo
			terms[i].hi += hi
		} else if stride > 0 && lo < hi {
			terms = append(terms, term{stride, lo, hi})
		}
	}
	for i, d := range a.shape {
		add(a.strides[i], 0, d-1)
	}
	for i, d := range b.shape {
		add(b.strides[i], 1-d, 0)
	}
	slices.SortFunc(terms, func(x, y term) int { return cmp.Compare(y.stride, x.stride) })
	var meet func(terms []term, want int) bool
	meet = func(terms []term, want int) bool {
		if len(terms) == 0 {
			return want == 0
		}
		lo, hi := 0, 0 // what the terms after the first can make
		for _, t := range terms[1:] {
			lo += t.lo * t.stride
			hi += t.hi * t.stride
		}
		t := terms[0]
		for n := max(t.lo, (want-hi)/t.stride-1); n <= t.hi && want-n*t.stride >= lo; n++ {
			if rest := want - n*t.stride; rest <= hi && meet(terms[1:], rest) {
				return true
			}
		}
		return false
	}
	return meet(terms, b.off-a.off)
}
