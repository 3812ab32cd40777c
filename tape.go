package snug

import (
	"fmt"
	"iter"
	"slices"

	"github.com/snug-ml/snug/memory"
)

// entry is one recorded operation or recomputed block. It holds no tensor: what is
// alive is what is named in saved.
type entry struct {
	op      *Op // nil: a recomputed block
	site    *site
	in, out []*slot // in: nil where no gradient is wanted
	outs    []*held // the results, which Backward frees
	shapes  [][]int // of the inputs
	saved   []save
	key     [3]uint64
	redo    *redo // of a recomputed block
	done    *site
	train   bool
	want    bool // it leads from the loss to something that wants a gradient

	readers int     // saves of its result, while that is a recipe
	remade  *Tensor // what the recipe gave
}

// slot is where a tensor's gradient gathers: of an operation's result, of a tracked
// tensor, or, standing for it in one scope, of a parameter.
type slot struct {
	entry *entry
	param *Param
	grad  *Tensor
	left  int32 // of a walk's entries, those still to add to a parameter
	dtype DType // of the gradient
	leaf  bool
	need  bool // of a walk that marks what leads to the loss: this does
	want  bool
}

func (l *slot) drop() {
	if l.grad != nil {
		l.grad.st.release()
		l.grad = nil
	}
}

func (e *entry) drop() {
	for _, v := range e.saved {
		v.drop()
	}
	clear(e.saved)
	e.saved = nil
	if e.redo != nil {
		e.redo.forget()
	}
	e.dropGrads()
}

func (e *entry) dropGrads() {
	for _, l := range e.out {
		l.drop()
	}
}

// BackwardOption restricts or extends one Backward.
type BackwardOption func(*backward)

type backward struct {
	weight float64
	into   func(*Param) bool
	onGrad func(*Param) error
	retain bool
	loss   *held
	at     *site
}

// Into adds to these parameters' gradients only; the others' are not even computed.
func Into(ps iter.Seq2[string, *Param]) BackwardOption {
	in := map[*Param]bool{}
	for _, p := range ps {
		in[p] = true
	}
	return func(b *backward) { b.into = func(p *Param) bool { return in[p] } }
}

// OnGrad is called when a parameter's gradient is final: all uses, recomputed ones too.
func OnGrad(fn func(*Param) error) BackwardOption { return func(b *backward) { b.onGrad = fn } }

// Retain leaves all that led to the loss for another Backward, and keeps the memory. What
// is tracked gets no gradient from this one; those of parameters are OnGrad's to free.
func Retain() BackwardOption { return func(b *backward) { b.retain = true } }

// Weight multiplies the gradients, as if the loss had been scaled.
func Weight(w float64) BackwardOption { return func(b *backward) { b.weight = w } }

// Backward adds to the gradients of what led to t. It walks that part of the tape
// alone and frees each saved value when its reader is done; t and what was marked
// Keep stay readable.
func (t *Tensor) Backward(o ...BackwardOption) error {
	s := t.s
	b := &backward{weight: 1, into: func(*Param) bool { return true }, loss: t.h, at: s.site("backward")}
	for _, set := range o {
		set(b)
	}
	switch {
	case !s.ok("backward"):
		return s.err
	case t.Len() != 1:
		s.Fail("backward", fmt.Errorf("%w: a loss of one element wanted, got %v", ErrShape, t.shape))
	case t.slot == nil:
		s.Fail("backward", fmt.Errorf("nothing that led to the result of %s wants a gradient", t.maker()))
	case t.slot.entry != nil && t.slot.entry.done != nil:
		s.Fail("backward", t.slot.entry.used())
	}
	s.fail(b.at, s.unmet())
	defer func(c memory.Category) {
		for s.cat = c; s.forgetOne(); {
		}
	}(s.cat)
	s.cat = memory.Flowing
	s.now = b.at
	if seed := s.result(t.dtype, t.shape); s.err == nil {
		s.kernel("fill", []float64{b.weight}, [3]uint64{}, []*Tensor{seed})
		if t.slot.entry == nil {
			s.reach(t.slot, seed, b)
			return s.err
		}
		t.slot.grad = s.take(seed)
		s.traffic.next = len(s.tape)
		if !b.retain {
			s.dropCasts()
		}
		s.walk(0, b)
	}
	return s.err
}

// reach is Backward of a loss that is itself what wants the gradient: a tracked tensor or
// a parameter.
func (s *Scope) reach(l *slot, seed *Tensor, b *backward) {
	switch {
	case l.param == nil:
		if !b.retain {
			s.accumulate(l, seed)
		}
	case b.into(l.param):
		if s.accumulate(l, seed); s.err == nil {
			s.fail(b.at, s.final(l.param, b))
		}
	}
}

func (e *entry) used() error {
	return fmt.Errorf("%w: what %s saved, by Backward%s", ErrFreed, e.site, e.done.onLine())
}

// walk is the heart: it runs s.tape[mark:] in reverse, from the results that have a
// gradient already, and takes what it ran off the tape.
func (s *Scope) walk(mark int, b *backward) {
	tape := s.tape[mark:]
	leads := make([]bool, len(tape))
	for i, e := range slices.Backward(tape) { // what leads to the loss
		leads[i] = slices.ContainsFunc(e.out, func(l *slot) bool { return l.need || l.grad != nil })
		for _, l := range e.in {
			if leads[i] && l != nil {
				if l.need = true; l.entry != nil && l.entry.done != nil {
					s.Fail("backward", l.entry.used())
				}
			}
		}
	}
	for i, e := range tape { // and from what wants a gradient
		e.want = false
		for _, l := range e.in {
			if leads[i] && l != nil {
				if l.need = false; l.param != nil {
					l.want = b.into(l.param)
					l.left++
				}
				l.want = l.want || l.leaf && !b.retain
				e.want = e.want || l.want
			}
		}
		for _, l := range e.out {
			l.want = e.want
		}
	}
	var rest []*entry // of other losses
	for i, e := range slices.Backward(tape) {
		if !leads[i] || b.retain {
			rest = append(rest, e)
		}
		if !leads[i] {
			continue
		}
		for _, h := range e.outs { // its results: what is still to be read of them is saved
			if h != nil && !h.keep && h != b.loss && !b.retain {
				h.st.freed = b.at
				h.drop()
			}
		}
		if e.want && s.ok("backward") {
			s.back(e, b)
		}
		if s.err != nil {
			return // the scope frees the rest
		}
		if b.retain {
			e.dropGrads()
		} else {
			e.drop()
			e.done = b.at
		}
		for _, l := range e.in {
			if l != nil && l.param != nil {
				if l.left--; l.left == 0 && l.want && s.replaying == 0 {
					s.walking = e
					s.fail(e.site, s.final(l.param, b))
					s.walking = nil
				}
			}
		}
	}
	slices.Reverse(rest)
	s.leave(append(s.tape[:mark], rest...))
}

// leave has tape alone stay of s.tape.
func (s *Scope) leave(tape []*entry) {
	clear(s.tape[len(tape):])
	s.tape = tape
}

// back runs one entry's backward and hands on what it returns.
func (s *Scope) back(e *entry, b *backward) {
	outer := s.walking
	s.walking, s.now = e, e.site
	f := s.push(mode{train: e.train})
	f.inner = true
	c := &f.call
	c.s, c.e = s, e
	guests := len(s.guests)
	s.fail(e.site, s.prefetch())
	if e.redo != nil {
		s.again(e, b)
	} else {
		gs := e.op.Backward(c, e.out[0].grad)
		s.fail(e.site, e.check(gs))
		for i, l := range e.in {
			if s.err == nil && gs[i] != nil && l != nil && l.want {
				s.accumulate(l, gs[i])
			}
		}
	}
	s.pop()
	s.sendHome(guests)
	s.walking = outer
}

// check refuses gradients that are not the inputs': an operation of a user's may be wrong.
func (e *entry) check(gs []*Tensor) error {
	if len(gs) != len(e.in) {
		return fmt.Errorf("%w: %d gradients for %d inputs", ErrShape, len(gs), len(e.in))
	}
	for i, g := range gs {
		if g == nil || e.in[i] == nil {
			continue
		}
		if !slices.Equal(g.shape, e.shapes[i]) {
			return fmt.Errorf("%w: a gradient %v of input %d, which is %v", ErrShape, g.shape, i, e.shapes[i])
		}
		if !g.dtype.Float() {
			return fmt.Errorf("%w: a gradient of %s of input %d", ErrDType, g.dtype, i)
		}
	}
	return nil
}

// accumulate adds g, in place where nobody else holds one of the two.
func (s *Scope) accumulate(l *slot, g *Tensor) {
	if s.err == nil && g.dtype != l.dtype { // under autocast
		g = s.inType(g, l.dtype)
	}
	switch {
	case s.err != nil:
	case l.param != nil:
		s.fail(s.now, l.param.add(s, g))
	case l.grad == nil:
		l.grad = s.take(g)
	case l.grad.exclusive():
		s.kernel("add", nil, [3]uint64{}, []*Tensor{l.grad}, l.grad, g)
	case g.exclusive() && g.h != nil && g.h.frame == s.frame:
		s.kernel("add", nil, [3]uint64{}, []*Tensor{g}, l.grad, g)
		l.drop()
		l.grad = s.take(g)
	default:
		sum := s.result(g.dtype, g.shape)
		s.kernel("add", nil, [3]uint64{}, []*Tensor{sum}, l.grad, g)
		if s.err == nil {
			l.drop()
			l.grad = s.take(sum)
		}
	}
}

// exclusive reports whether t alone means its storage, and all of it.
func (t *Tensor) exclusive() bool {
	return t.st != nil && !t.st.fixed && t.st.refs.Load() == 1 && t.contiguous() && t.st.bytes == int64(t.Len())*int64(t.dtype.Size())
}
