package snug

import (
	"errors"
	"fmt"
	"slices"

	"github.com/snug-ml/snug/memory"
)

// redo is what running a recomputed block again takes.
type redo struct {
	fn    func(...*Tensor) []*Tensor
	args  []*storage // the entry's first saves
	mode  mode
	draws uint64
	reads []*storage // from outside, in order
	need  int        // of its steps, those that make what backward reads; see watch
	kept  []*kept    // results that the second run need not compute
	own   int        // the entry's saves before theirs
}

// watch notes what a recomputed block reads that was made before it.
type watch struct {
	from  uint64 // the first storage that is its own
	reads []*storage
	seen  []*Tensor  // the same, once each
	ops   int        // begun, two steps each: casts of inputs, then Forward
	need  int        // steps up to the last whose result backward reads, so far
	kept  []*kept    // by a policy
	redo  *redo      // of the second run, which must read the same
	args  []*storage // and its arguments, which may have been made again
}

var (
	errOtherReads      = errors.New("the block's second run reads other tensors than its first: the function captures a variable that has changed")
	errOtherOperations = errors.New("the block's second run has other operations than its first: the function depends on a variable that has changed")
)

func (w *watch) read(t *Tensor) error {
	if w == nil || t.st.id >= w.from {
		return nil
	}
	st, n := t.st, len(w.reads)
	if w.redo != nil {
		if i := slices.Index(w.args, st); i >= 0 {
			st = w.redo.args[i]
		}
		if n >= len(w.redo.reads) || w.redo.reads[n] != st {
			return errOtherReads
		}
	}
	if !slices.Contains(w.reads, st) {
		w.seen = append(w.seen, t)
	}
	w.reads = append(w.reads, st)
	return nil
}

// begin counts an operation in the recomputed blocks around it, and skips what it would
// compute where a second run has all that backward reads. end gets what it returns.
func (s *Scope) begin() (skipped bool) {
	skipped = s.skip
	for f := s.frame; f != nil && !s.frame.op; f = f.up {
		if w := f.watch; w != nil {
			s.skip = s.skip || w.redo != nil && 2*w.ops >= w.redo.need
			w.ops++
		}
	}
	return skipped
}

func (s *Scope) end(skipped bool) { s.skip = skipped }

// needs says that backward will read what operations made so far, but in the given number
// of last steps.
func (s *Scope) needs(but int) {
	for f := s.frame; f != nil; f = f.up {
		if w := f.watch; w != nil {
			w.need = max(w.need, 2*w.ops-but)
		}
	}
}

// Layer runs a layer's forward pass: errors inside name it, and all that it made is
// freed but its result and what backward needs. Savers do not act on it.
func Layer(layer any, fn func(*Tensor) *Tensor, x *Tensor) *Tensor {
	if x == nil {
		panic(fmt.Sprintf("snug: the input of a layer is nil: %T", layer))
	}
	s := x.s
	defer s.Enter(layer)()
	s.push(s.frame.mode)
	y := s.made("layer", []*Tensor{fn(x)})[0]
	s.pop(y)
	return y
}

// made are the results of a user's function, which must be tensors of this scope.
func (s *Scope) made(op string, ys []*Tensor) []*Tensor {
	for i, y := range ys {
		switch {
		case y == nil:
			s.Fail(op, fmt.Errorf("its function returned nil in place of a tensor"))
			ys[i] = s.blank(Float32, nil)
		case y.s != s:
			s.Fail(op, fmt.Errorf("%w: its function returned a tensor of another scope, made by %s", ErrFreed, y.maker()))
			ys[i] = s.blank(y.dtype, y.shape)
		}
	}
	return ys
}

// Block runs fn(x) like Layer, under options that hold inside; it is also what savers
// act on: recomputed in backward, or offloaded when it ends.
func Block(fn func(*Tensor) *Tensor, x *Tensor, o ...Option) *Tensor {
	return BlockN(func(x ...*Tensor) []*Tensor { return []*Tensor{fn(x[0])} }, []*Tensor{x}, o...)[0]
}

func BlockN(fn func(...*Tensor) []*Tensor, x []*Tensor, o ...Option) []*Tensor {
	if slices.Contains(x, nil) {
		panic("snug: an argument of a block is nil")
	}
	s := x[0].s
	outer := s.frame.mode
	m := outer
	m.recompute, m.here = nil, false
	m, err := m.with(o)
	if err == nil && m.rand != outer.rand {
		err = errors.New("the random stream belongs to the scope")
	}
	s.fail(s.site("block"), err)
	s.needs(0) // its arguments may be saved
	guests := len(s.guests)
	away := m.offload
	m.offload = nil // only the outermost one moves what it saved
	if away != nil {
		s.traffic.ahead = away.ahead
	}
	mark := len(s.tape)
	var ys []*Tensor
	if chosen := outer.recompute.next() || m.here; chosen && m.record && s.ok("block") {
		ys = s.once(fn, x, m)
	} else {
		s.push(m)
		ys = s.made("block", fn(x...))
		s.pop(ys...)
	}
	s.sendHome(guests)
	if away != nil && s.err == nil {
		s.fail(s.site("offload"), s.offload(s.tape[mark:], away, ys))
	}
	return ys
}

// once runs a block without recording its inside, and records it as one entry that
// saves its arguments and what else it read.
func (s *Scope) once(fn func(...*Tensor) []*Tensor, x []*Tensor, m mode) []*Tensor {
	r := &redo{fn: fn, mode: m, draws: s.draws}
	e := &entry{site: s.site("block"), redo: r, train: m.train}
	c := &Call{s: s, e: e, record: true}
	m.record = false
	f := s.push(m)
	f.watch = &watch{from: s.serial + 1}
	ys := s.made("block", fn(x...))
	r.reads, r.need = f.watch.reads, f.watch.need
	for _, t := range x {
		e.in = append(e.in, t.slot)
		r.args = append(r.args, t.st)
		c.Save("argument", t)
	}
	for _, t := range f.watch.seen {
		if !t.st.fixed && !slices.Contains(r.args, t.st) {
			itself := *t // no recipe: the function holds this very tensor
			itself.remake = nil
			c.Save("captured", &itself)
		}
		if t.slot != nil && !slices.Contains(e.in, t.slot) {
			e.in = append(e.in, t.slot)
		}
	}
	r.own = len(e.saved)
	r.kept = f.watch.chosen(r.need, e)
	for _, k := range r.kept {
		e.saved = append(e.saved, k.saved...)
	}
	for i, y := range ys {
		if s.err == nil && y.st != nil && (y.h == nil || y.h.frame != f) {
			ys[i] = s.own(y.alias()) // it was made outside
		}
	}
	s.pop(ys...)
	if s.err != nil || !slices.ContainsFunc(e.in, func(l *slot) bool { return l != nil }) {
		e.drop()
		s.worth(e, nil)
		return ys
	}
	for _, y := range ys {
		y.remake = nil
		y.slot = &slot{entry: e, dtype: y.dtype}
		e.out, e.outs = append(e.out, y.slot), append(e.outs, y.h)
	}
	s.tape = append(s.tape, e)
	return ys
}

// again runs the block a second time, recording, as far as backward reads what it makes,
// and then backward through it. Its gradients gather in the outer slots, in the order of
// a plain run.
func (s *Scope) again(e *entry, b *backward) {
	r := e.redo
	var args []*Tensor
	var sts []*storage
	for i, v := range e.saved[:r.own] {
		if t := s.restore(e, v); i < len(r.args) {
			t.slot = e.in[i]
			args, sts = append(args, t), append(sts, t.st)
		}
	}
	if s.err != nil {
		return
	}
	m := r.mode
	m.record = true
	if m.recompute != nil {
		m.recompute = &chooser{choose: m.recompute.choose}
	}
	mark := len(s.tape)
	draws, cat, layers, outer := s.draws, s.cat, s.layers, s.rerun
	s.draws, s.cat, s.layers, s.walking = r.draws, memory.Activations, []any{e.site.layer}, nil
	s.rerun, s.front = e, nil
	s.replaying++
	f := s.push(m)
	f.watch = &watch{from: s.serial + 1, redo: r, args: sts}
	ys := s.made("block", r.fn(args...))
	s.draws, s.cat, s.layers, s.walking, s.rerun = draws, cat, layers, e, outer
	if len(f.watch.reads) != len(r.reads) || len(ys) != len(e.out) {
		s.fail(e.site, errOtherReads)
	}
	for i, l := range e.out {
		if s.err == nil && l.grad != nil && ys[i].slot != nil {
			if to := ys[i].slot; to.param == nil && to.grad == nil {
				to.grad, l.grad = l.grad, nil
			} else {
				s.accumulate(to, l.grad)
			}
		}
		l.drop()
	}
	s.pop() // the results too: only what they saved is read
	s.dropCasts()
	s.worth(e, s.tape[mark:])
	if !b.retain { // what the second run saved has its own shares
		e.drop()
	}
	inside := *b
	inside.retain = false // it can be made once more
	s.walk(mark, &inside)
	if s.err == nil { // what did not lead to the loss
		for _, e := range s.tape[mark:] {
			e.drop()
		}
		s.leave(s.tape[:mark])
	}
	s.replaying--
}
