package snug

import (
	"fmt"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/memory"
)

// precision is what an operation wants of its float inputs under autocast.
type precision uint8

const (
	asIs       precision = iota // whatever they are: also of operations made outside, unless they say Low
	low                         // products: the low type, whose sums are float32 all the same
	full                        // what loses too much in 16 bits: float32
	widest                      // operations of several inputs: the widest one's type
	likeFirst                   // in place: the first input's type
	firstApart                  // a normalization: the first as it is, the others float32
	statistics                  // a batch norm: the same, and what is added as it is
)

// Autocast has products inside run in a 16-bit type, what loses too much in it run in
// float32, and what joins tensors in the widest type that comes. Float32 switches it off.
// For package amp.
func Autocast(d DType) Option {
	o := Option{kind: "autocast", set: func(m *mode) { m.autocast = d }}
	if d != Float32 && !d.Half() {
		o.err = fmt.Errorf("autocast to %s: bfloat16, float16, or float32 for none wanted", d)
	}
	return o
}

// cast prepares an operation's inputs. A cast is no operation of its own: it shares the
// slot of what it casts, and a gradient is cast when it is added there. So the gradients
// of parameters gather in their own type. Weights that a kernel rounds are not cast.
func (s *Scope) cast(p precision, rounds string, in []*Tensor) {
	to := s.frame.mode.autocast
	if to == Float32 || p == asIs || s.err != nil {
		return
	}
	rest := in
	switch p {
	case full:
		to = Float32
	case widest:
		to = in[0].dtype
		for _, t := range in[1:] {
			if t.dtype.Float() && (wider(t.dtype, to) || !to.Float()) {
				to = t.dtype
			}
		}
	case likeFirst:
		to, rest = in[0].dtype, in[1:]
	case firstApart:
		to, rest = Float32, in[1:]
	case statistics:
		to, rest = Float32, in[1:5]
	}
	for i, t := range rest {
		if i == 1 && t.dtype == Float32 && rounds != "" && s.wide(rounds, to) {
			continue
		}
		// Float64 was asked for and stays.
		if t.dtype.Float() && t.dtype != to && (t.dtype != Float64 || p == likeFirst) && to.Float() {
			rest[i] = s.castTo(t, to)
		}
	}
}

// wide reports whether a kernel of 16 bits does with float32 weights.
func (s *Scope) wide(kernel string, of DType) bool {
	k, err := driver.Find(kernel, of, s.dev.backend)
	return err == nil && k.Wide
}

func wider(a, b DType) bool {
	if a.Half() && b.Half() { // of the two neither holds the other
		return false
	}
	return a.Size() > b.Size()
}

// inFull makes operations that autocast runs in float32. One in place keeps its input's
// type.
func inFull(apart, inPlace *Op) (*Op, *Op) {
	apart.precision = full
	return apart, inPlace
}

type castKey struct {
	st      *storage
	version int
	to      DType
}

// castTo is t in another type. A parameter is cast once until backward, all of it, and views
// of it are taken of that; others are cast anew.
func (s *Scope) castTo(t *Tensor, to DType) *Tensor {
	y := s.blank(to, t.shape)
	switch {
	case t.st == nil:
	case t.st.home != nil:
		y = s.inType(t, to)
		y.remake = castAgain(t, to)
	case t.st.fixed:
		if base := s.castParam(t, to); base != nil {
			y = base.alias()
			y.shape, y.strides, y.off = t.shape, t.strides, t.off
		}
	case !s.skip:
		once := t.alias() // where a dimension is repeated
		once.shape = slices.Clone(t.shape)
		for i := range once.shape {
			if t.strides[i] == 0 {
				once.shape[i] = min(1, t.shape[i])
			}
		}
		y = s.inType(once, to)
		if y.st != nil && !slices.Equal(once.shape, t.shape) {
			e := driver.Expand(&driver.Array{Shape: y.shape, Strides: y.strides}, t.shape)
			y.shape, y.strides = t.shape, e.Strides
		}
	}
	y.slot = t.slot
	return y
}

// castParam is all of the parameter's storage in another type. A second run that computes
// nothing any more makes it, too: a product that was kept has a gradient that reads it.
func (s *Scope) castParam(t *Tensor, to DType) *Tensor {
	key := castKey{t.st, t.st.version, to}
	if base := s.casts[key]; base != nil {
		return base
	}
	defer s.end(s.skip)
	s.skip = false
	all := &Tensor{s: s, dtype: t.dtype, shape: []int{int(t.st.bytes) / t.dtype.Size()}, strides: []int{1}, st: t.st}
	inner, cat := s.frame, s.cat
	for s.frame.up != nil { // it lives as long as the scope
		s.frame = s.frame.up
	}
	s.cat = memory.Casts
	base := s.inType(all, to)
	s.frame, s.cat = inner, cat
	if s.err != nil {
		return nil
	}
	base.st.fixed = true // not written, not offloaded
	if s.casts == nil {
		s.casts = map[castKey]*Tensor{}
	}
	s.casts[key] = base
	return base
}

// dropCasts leaves the casts of parameters to what saved them, so that in backward each goes
// with its last reader.
func (s *Scope) dropCasts() {
	for _, base := range s.casts {
		base.h.drop()
	}
	clear(s.casts)
}

// inType is a copy of t in another type, unrecorded.
func (s *Scope) inType(t *Tensor, to DType) *Tensor {
	y := s.result(to, t.shape)
	s.kernel("cast", nil, [3]uint64{}, []*Tensor{y}, t)
	return y
}
