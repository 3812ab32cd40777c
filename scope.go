package snug

import (
	"context"
	"slices"
	"sync"

	"github.com/snug-ml/snug/memory"
)

// Scope owns all tensors made in it until it ends. The first failure sticks: later
// operations return tensors that have a shape and no storage. It belongs to one
// goroutine.
type Scope struct {
	ctx       context.Context
	dev       *Device
	threads   int // that a kernel may use
	err       error
	done      bool
	frame     *frame          // the innermost
	cat       memory.Category // of what operations allocate now
	serial    uint64          // of storages
	rand      *Rand
	tick      uint64
	draws     uint64
	layers    []any   // entered and not left
	last      *Param  // the last one read
	leaves    []*slot // of tracked tensors
	began     []begun // gradients this scope created or added to
	assigned  []assignment
	casts     map[castKey]*Tensor  // of parameters, under autocast
	ops       map[any]*Op          // see opOf
	met       map[*policy][]string // operations that a policy of names was asked about
	marks     []*Mark              // told before buffers change
	onSuccess []func()
	skip      bool   // nothing is computed: a second run is past what backward reads
	rerun     *entry // the recomputed block whose second run is under way
	replaying int    // recomputed blocks under way: effects took place in the first run
	walking   *entry // whose backward runs
	now       *site  // the operation under way
	asked     int64  // of the device's memory, last
	traffic   traffic
	guests    []*storage // values of parameters on the host, that were brought
	visited   *route     // the latest of them
	front     *Param     // the next to be brought ahead
	rescuer   func() int64
	remade    []*entry // whose recipes' results are remembered
	sparing   func() bool
	torn      bool // a parameter was updated inside

	kit
	lent *kit // whose content that is

	// A user's tensor refers to these; they are not used again.
	sites    slab[site]
	slots    slab[slot]
	storages slab[storage]
	helds    slab[held]
	tensors  slab[Tensor]
	ints     slab[int]
}

// kit is what a scope works with and nobody sees after it. The next scope has it again: so
// operations leave little to Go's garbage collector.
type kit struct {
	tape      []*entry
	entries   shelf[entry]
	slotLists shelf[*slot]
	heldLists shelf[*held]
	shapes    shelf[[]int]
	saves     shelf[save]
	params    map[*Param]*Tensor // those read, each once
	order     []*Param           // the same, in order
	spare     *frame             // those that were popped, linked by up
	held      []*held            // by the outermost
	launching *launch
}

var kits = sync.Pool{New: func() any { return &kit{params: map[*Param]*Tensor{}} }}

// borrow gives s a kit until it ends.
func (s *Scope) borrow() {
	s.lent = kits.Get().(*kit)
	s.kit = *s.lent
}

// giveBack ends that. What s is asked for afterwards, in vain, comes from an empty kit.
func (s *Scope) giveBack() {
	k := &s.kit
	k.entries.reset()
	k.slotLists.reset()
	k.heldLists.reset()
	k.shapes.reset()
	k.saves.reset()
	clear(k.tape)
	clear(k.params)
	clear(k.order)
	k.tape, k.order, k.held = k.tape[:0], k.order[:0], s.frame.made[:0]
	if k.launching != nil {
		*k.launching = launch{dense: k.launching.dense}
	}
	*s.lent, s.kit = *k, kit{}
	kits.Put(s.lent)
}

// frame is one Block, operation or scope: what is made in it, and how.
type frame struct {
	up    *frame
	mode  mode
	made  []*held
	watch *watch     // of a recomputed block: what it reads from outside
	op    bool       // of an operation, whose own operations do not count
	inner bool       // of that, its backward or its recipe: nobody else sees what is made
	call  Call       // that operation's, or backward's
	in    [6]*Tensor // what that is given and, backward, returns
}

func (s *Scope) push(m mode) *frame {
	f := s.spare
	if f == nil {
		f = new(frame)
	} else {
		s.spare = f.up
	}
	f.up, f.mode = s.frame, m
	s.frame = f
	return f
}

// pop frees all that the innermost frame made, and hands results to the one around it.
func (s *Scope) pop(results ...*Tensor) {
	f := s.frame
	s.frame = f.up
	for _, r := range results {
		if r != nil && r.h != nil && r.h.frame == f {
			r.h.frame = f.up
			f.up.made = append(f.up.made, r.h)
		}
	}
	f.free()
	*f = frame{up: s.spare, made: f.made[:0]}
	s.spare = f
}

func (f *frame) free() {
	for _, h := range slices.Backward(f.made) {
		if h.frame == f {
			h.drop()
		}
	}
	clear(f.made)
	f.made = f.made[:0]
	if f.watch != nil {
		for _, k := range f.watch.kept {
			k.drop()
		}
		f.watch.kept = nil
	}
}

// Err is the first failure, if any.
func (s *Scope) Err() error { return s.err }

// Training is what layers ask; there is no flag in them.
func (s *Scope) Training() bool { return s.frame.mode.train }

// OnSuccess runs fn once the scope has ended without error.
func (s *Scope) OnSuccess(fn func()) {
	if s.replaying == 0 {
		s.onSuccess = append(s.onSuccess, fn)
	}
}

// Enter says that what follows belongs to layer, until the returned func is called.
func (s *Scope) Enter(layer any) (leave func()) {
	n := len(s.layers)
	s.layers = append(s.layers, layer)
	return func() { s.layers = s.layers[:n] }
}

// Fail reports as operations do. Only the first failure counts; its gradients are
// rolled back at once. In backward it has the path and line of the forward operation.
func (s *Scope) Fail(op string, err error) {
	if s.err == nil && err != nil {
		s.fail(s.site(op), err)
	}
}

func (s *Scope) fail(w *site, err error) {
	if s.err != nil || err == nil {
		return
	}
	op := w.op
	if e := s.walking; e != nil {
		op, w = e.site.op+" backward", e.site
	}
	s.abort(&OpError{op, w.Path(), w.At(), err})
}

func (s *Scope) abort(err error) {
	if s.err == nil {
		s.err = err
		if s.torn {
			s.err = &tornError{err}
		}
		for _, b := range s.began {
			b.undo()
		}
		s.began = nil
	}
}

// ok reports whether the scope may go on; a cancelled context is a failure.
func (s *Scope) ok(op string) bool {
	if s.err == nil {
		if s.done {
			return false
		}
		if err := s.ctx.Err(); err != nil {
			s.Fail(op, err)
		}
	}
	return s.err == nil
}

func (s *Scope) close() {
	for _, e := range s.tape {
		e.drop()
	}
	for _, l := range s.leaves {
		l.drop()
	}
	for s.frame.up != nil { // after a panic
		s.frame.free()
		s.frame = s.frame.up
	}
	s.frame.free()
	for _, p := range s.order {
		s.params[p].st.release()
		p.leave(s)
	}
	s.traffic.land()
	for _, a := range s.assigned {
		if s.err == nil {
			for _, m := range s.marks {
				m.before(a.p)
			}
			a.p.replace(a.t.st, s.siteOf("assign", a.p))
		} else {
			a.t.st.release()
		}
	}
	if s.rand != nil {
		s.rand.giveBack(s.err == nil)
	}
	s.assigned, s.done = nil, true
	if s.err == nil {
		for _, fn := range s.onSuccess {
			fn()
		}
	}
}
