package snug

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/memory"
)

// Operand is a *Tensor or a *Param.
type Operand interface{ In(*Scope) *Tensor }

// Op is an operation: two plain functions that share nothing but what Forward saves
// by name. Both run unrecorded, capture no tensor, and whatever else they make is freed
// when they return.
type Op struct {
	Name string
	// Shape is the result's, a best guess with an error; nil: the first input's.
	Shape    func(in ...[]int) ([]int, error)
	Forward  func(c *Call, in ...*Tensor) *Tensor
	Backward func(c *Call, dy *Tensor) []*Tensor // one per input, nil where !c.Needs(i)
	// Remake is a cheap function of what is saved that gives Forward's result again:
	// who saves that result then holds no memory for it.
	Remake  func(c *Call) *Tensor
	InPlace bool // Forward writes its first input, and Apply returns that one
	// Low has floats come in the low type under autocast, as products have; else they come
	// as they are.
	Low bool

	precision precision                           // what autocast does to the inputs
	rounds    string                              // the kernel that may round the second input itself; see driver.Kernel.Wide
	cost      func(in [][]int, out []int) float64 // multiplications; nil: it is no product
}

// Call is one run of an operation.
type Call struct {
	s      *Scope
	e      *entry
	record bool
	out    []int  // the result's shape
	from   uint64 // the last storage before Forward
	first  *watch // of a recomputed block's first run, which may keep the result
	made   []save // by Forward, which saved it; noted for first
}

// save is a storage that an operation declared, at the version it had; or a recipe:
// the entry that makes it again, and shares in what that needs.
type save struct {
	name    string
	dtype   DType
	st      *storage
	shape   []int
	strides []int
	off     int
	version int
	from    *entry
	needs   []save
}

// hold takes shares in what v means, for v's owner.
func (v *save) hold(s *Scope) {
	if v.from == nil {
		v.st.hold()
	} else {
		v.from.read(1)
	}
	v.needs = append(s.saves.room(len(v.needs)), v.needs...)
	for i := range v.needs {
		v.needs[i].hold(s)
	}
}

func (v save) drop() {
	if v.from == nil {
		v.st.release()
	} else {
		v.from.read(-1)
	}
	for _, n := range v.needs {
		n.drop()
	}
}

// Save declares that backward will read t. A name is used once.
func (c *Call) Save(name string, t *Tensor) {
	if t.st == nil {
		return
	}
	if t.s != c.s {
		c.s.fail(c.e.site, c.s.ready(t))
		return
	}
	switch op := c.e.op; {
	case op == nil || c.s.frame.up.op: // a block, or an operation in another one's Forward
	case op.InPlace || t.st.id > c.from:
		c.s.needs(0)
	case t.h != nil && t.h.frame == c.s.frame: // a cast
		c.s.needs(1)
	default:
		c.s.needs(2)
	}
	if c.first != nil && t.st.id > c.from {
		c.made = append(c.made, t.save(name))
	}
	if c.record {
		c.e.saved = c.s.saves.more(c.e.saved)
		v := &c.e.saved[len(c.e.saved)-1]
		*v = t.save(name)
		if r := t.remake; r != nil {
			v.from, v.needs = r, r.saved
		}
		v.hold(c.s)
	}
}

func (t *Tensor) save(name string) save {
	return save{name: name, dtype: t.dtype, st: t.st, shape: t.shape, strides: t.strides, off: t.off, version: t.st.version}
}

// deepest is how many recipes may follow one another; what would be one more keeps its
// result. Where there is no room to remember what they give, each reading makes them all
// again: in a chain of n residual blocks n²/2 of them.
const deepest = 8

func depth(saved []save) (n int) {
	for _, v := range saved {
		if v.from != nil {
			n = max(n, 1+depth(v.needs))
		}
	}
	return n
}

// Saved is what Save was given: brought back, made again, or an error if it was
// written in the meantime.
func (c *Call) Saved(name string) *Tensor {
	i := slices.IndexFunc(c.e.saved, func(v save) bool { return v.name == name })
	if i < 0 {
		panic(fmt.Sprintf("snug: %s saved no %q", c.e.site.op, name))
	}
	return c.s.restore(c.e, c.e.saved[i])
}

func (s *Scope) restore(e *entry, v save) *Tensor {
	if v.from != nil {
		if t := s.remembered(v.from); t != nil {
			return t
		}
		again := s.entries.new()
		*again = *v.from
		again.saved = v.needs
		f := s.push(s.frame.mode)
		f.inner = true
		c := &f.call
		c.s, c.e = s, again
		t := again.op.Remake(c)
		s.pop(t) // what it was made of, again perhaps, is freed
		s.remember(v.from, t)
		return t
	}
	if s.err == nil && v.st.version != v.version {
		s.fail(e.site, fmt.Errorf("%s, which it saved, was written by %s", v.name, v.st.writer))
	}
	if s.err == nil {
		s.fail(e.site, s.fetch(v.st))
	}
	if s.err != nil {
		return s.blank(v.dtype, v.shape)
	}
	t := s.tensors.new()
	*t = Tensor{s: s, dtype: v.dtype, shape: v.shape, strides: v.strides, off: v.off, st: v.st, seen: v.version}
	return t
}

// gradients are what Backward returns, still empty, until it does.
func (c *Call) gradients() []*Tensor {
	n := len(c.e.in)
	if room := &c.s.frame.in; n <= len(room) {
		return room[:n]
	}
	return make([]*Tensor, n)
}

// gradient is what Backward returns where the first input alone has a gradient.
func (c *Call) gradient(dx *Tensor) []*Tensor {
	d := c.gradients()
	d[0] = dx
	return d
}

// dims is a shape, or strides.
func (c *Call) dims(d ...int) []int { return c.s.dims(d...) }

// Needs reports whether the i-th input's gradient is wanted.
func (c *Call) Needs(i int) bool  { return c.e.in[i] != nil && c.e.in[i].want }
func (c *Call) Shape(i int) []int { return c.e.shapes[i] } // of the i-th input

// wanted reports in Forward whether t's gradient may be, so that what only that needs is
// saved. In a recomputed block's first run it may.
func (c *Call) wanted(t *Tensor) bool { return !c.record || t.slot != nil }

// Scope is the one that the call runs in.
func (c *Call) Scope() *Scope { return c.s }

// Draw takes the key of a random operation; backward finds the same one.
func (c *Call) Draw() { c.e.key = c.s.draw(c.e.site.op) }

// Training says which mode the forward pass ran in.
func (c *Call) Training() bool { return c.e.train }

// view is a tensor over t's storage, off elements further on; without elements it stays
// within that.
func (c *Call) view(t *Tensor, shape, strides []int, off int) *Tensor {
	if t.st == nil {
		return c.s.blank(t.dtype, shape)
	}
	v := t.alias()
	v.shape, v.strides = shape, strides
	if numel(shape) > 0 {
		v.off += off
	}
	return c.s.own(v)
}

// Run runs a backend's kernel into a new tensor of the first input's type; f are the
// kernel's numbers. It is for operations whose kernels this module has.
func (c *Call) Run(kernel string, shape []int, f []float64, in ...*Tensor) *Tensor {
	return c.RunAs(kernel, in[0].dtype, shape, f, in...)
}

// RunAs is Run with a result of another type.
func (c *Call) RunAs(kernel string, dtype DType, shape []int, f []float64, in ...*Tensor) *Tensor {
	out := c.New(dtype, shape)
	c.Launch(kernel, f, []*Tensor{out}, in...)
	return out
}

// New is a tensor whose values are not defined yet; Launch writes them.
func (c *Call) New(dtype DType, shape []int) *Tensor { return c.s.result(dtype, shape) }

// Launch runs a kernel that writes out, which New made or, in place, an input.
func (c *Call) Launch(kernel string, f []float64, out []*Tensor, in ...*Tensor) {
	c.s.kernel(kernel, f, c.e.key, out, in...)
}

// result allocates a tensor of the innermost frame.
func (s *Scope) result(dtype DType, shape []int) *Tensor {
	if !s.ok(s.now.op) || s.skip {
		return s.blank(dtype, shape)
	}
	t, err := s.make(s.cat, dtype, shape)
	if err != nil {
		s.fail(s.now, err)
		return s.blank(dtype, shape)
	}
	return t
}

// kernel runs one on tensors that exist. Inputs with gaps are copied first where the
// kernel wants none; that and its workspace are freed when it is done.
func (s *Scope) kernel(name string, f []float64, key [3]uint64, out []*Tensor, in ...*Tensor) {
	if !s.ok(s.now.op) || s.skip {
		return
	}
	l := s.launching // nil while a copy for another kernel is made
	if s.launching = nil; l == nil {
		l = new(launch)
	}
	defer s.launched(l)
	a := &l.args
	*a = driver.Args{F: f, Key: key, In: l.in[:0], Out: l.out[:0], Threads: s.threads}
	dtype := out[0].dtype
	if len(in) > 0 {
		dtype = in[0].dtype
	}
	k, err := driver.Find(name, dtype, s.dev.backend)
	if err != nil {
		s.fail(s.now, fmt.Errorf("%w: %w", ErrDType, err))
		return
	}
	for i, t := range in {
		if t.st != nil && t.st.absent() { // a parameter's value that an operation read by itself
			if s.fail(s.now, s.fetch(t.st)); s.err != nil {
				return
			}
		}
		if t.dtype != in[0].dtype && !k.Mixed && !(k.Wide && i == 1 && t.dtype == Float32) {
			s.fail(s.now, fmt.Errorf("%w: %s and %s", ErrDType, in[0].dtype, t.dtype))
			return
		}
		if !k.Strided && !t.contiguous() {
			dense, err := s.make(memory.Workspace, t.dtype, t.shape)
			if err != nil {
				s.fail(s.now, err)
				return
			}
			l.dense = append(l.dense, dense)
			s.kernel("copy", nil, key, []*Tensor{dense}, in[i])
			t = dense
		}
		a.In = append(a.In, t.array())
	}
	for _, t := range out {
		if !k.Strided && !t.contiguous() {
			panic("snug: kernel " + name + " cannot write a view")
		}
		a.Out = append(a.Out, t.array())
	}
	s.fail(s.now, s.dev.launch(k, a, s.dev.mem, func(bytes int64) (*memory.Block, error) {
		return s.block(bytes, memory.Workspace, s.now)
	}))
}

// launch is what a kernel is called with: one for all of a scope's.
type launch struct {
	args  driver.Args
	in    [6]driver.Array
	out   [4]driver.Array
	dense []*Tensor // inputs' copies
}

// launched frees the copies and has the next kernel use l.
func (s *Scope) launched(l *launch) {
	for _, t := range slices.Backward(l.dense) {
		t.Free()
	}
	l.dense = l.dense[:0]
	s.launching = l
}

// ready checks that s may read t, tells the recomputed blocks around, and brings t
// back if it was offloaded.
func (s *Scope) ready(t *Tensor) error {
	switch {
	case t.s != s:
		return fmt.Errorf("%w: a tensor of another scope, made by %s", ErrFreed, t.maker())
	case t.st == nil && s.skip:
		return nil
	case t.st == nil:
		return fmt.Errorf("%w: a tensor without a value", ErrFreed)
	}
	for f := s.frame; f != nil; f = f.up {
		if err := f.watch.read(t); err != nil {
			return err
		}
	}
	switch {
	case t.st.refs.Load() == 0:
		by := "its block has ended"
		if t.st.freed != nil {
			by = fmt.Sprintf("Backward%s has used it up; Keep it before", t.st.freed.onLine())
		}
		return fmt.Errorf("%w: the result of %s: %s", ErrFreed, t.maker(), by)
	case t.seen != t.st.version && t.slot != nil && s.frame.mode.record:
		return fmt.Errorf("the result of %s was written by %s", t.maker(), t.st.writer)
	}
	return s.fetch(t.st)
}

func (t *Tensor) maker() string {
	if t.st == nil {
		return "a failed operation"
	}
	return t.st.at.String()
}

// mayWrite refuses what would change a recomputed block's input or a parameter.
func (s *Scope) mayWrite(t *Tensor) error {
	if t.st.fixed {
		return fmt.Errorf("%w: a parameter changes in Step only", ErrInUse)
	}
	if t.slot != nil && t.slot.leaf && s.frame.mode.record {
		return fmt.Errorf("%w: a tracked tensor", ErrInUse)
	}
	for f := s.frame; f != nil; f = f.up {
		if f.watch != nil && t.st.id < f.watch.from {
			return fmt.Errorf("a recomputed block would write the result of %s twice", t.maker())
		}
	}
	return nil
}

// Apply runs op on its inputs and records it, if one of them wants a gradient.
func Apply(op *Op, in ...Operand) *Tensor {
	s := scopeOf(in)
	var few [6]*Tensor
	given := few[:0]
	e := s.entries.new()
	e.op, e.shapes, e.in = op, s.shapes.room(len(in)), s.slotLists.room(len(in))
	for i, o := range in {
		t := operand(o, s)
		if t == nil {
			return s.lacking(op.Name, i+1, len(in))
		}
		given = append(given, t)
		e.shapes = append(e.shapes, t.shape)
	}
	shape, err := e.shapes[0], error(nil)
	if op.Shape != nil {
		shape, err = op.Shape(e.shapes...)
	}
	w := s.site(op.Name)
	if !s.ok(op.Name) {
		return s.blank(given[0].dtype, shape)
	}
	defer s.end(s.begin())
	e.site, e.train = w, s.frame.mode.train
	record := false
	for _, t := range given {
		if err == nil {
			err = s.ready(t)
		}
		e.in = append(e.in, t.slot)
		record = record || t.slot != nil
	}
	record = record && s.frame.mode.record
	if t := given[0]; err == nil && op.InPlace && t.st != nil {
		if err = cmp.Or(s.mayWrite(t), t.apart(given[1:])); err == nil {
			t.st.version++
			t.st.writer = w
			t.remake = nil
		}
	}
	s.fail(w, err)

	m := s.frame.mode
	m.record = false
	f := s.push(m)
	f.op, f.inner = true, true
	c := &f.call
	c.s, c.e, c.record, c.out = s, e, record, shape
	ts := append(f.in[:0], given...) // where Forward may have them
	s.now = w
	p := op.precision
	if op.Low {
		p = low
	}
	s.cast(p, op.rounds, ts)
	x := ts[0]
	if op.rounds != "" && m.autocast == Float32 && ts[1].dtype != x.dtype { // a kernel might take it
		s.fail(w, fmt.Errorf("%w: %s and %s", ErrDType, x.dtype, ts[1].dtype))
	}
	var y *Tensor
	if s.err == nil {
		y = c.forward(ts)
	}
	switch {
	case s.err != nil || op.InPlace:
	case y.st == nil: // skipped
		y = s.blank(y.dtype, y.shape)
	case y.h == nil || y.h.frame != s.frame: // Forward returned an input
		y = s.own(y.alias())
	}
	if s.err == nil && !op.InPlace && !slices.Equal(y.shape, shape) {
		s.fail(w, fmt.Errorf("%w: Forward gave %v where Shape says %v", ErrShape, y.shape, shape))
	}
	s.pop(y)
	switch {
	case s.err != nil:
		e.drop()
		return s.blank(x.dtype, shape)
	case op.InPlace:
		if y = x; y.st != nil {
			y.seen = y.st.version
		}
	default:
		y = s.shown(y)
	}
	if !record || op.Backward == nil || !y.dtype.Float() {
		e.drop()
		return y
	}
	y.slot = s.slots.new()
	y.slot.entry, y.slot.dtype = e, y.dtype
	e.out, e.outs = append(s.slotLists.room(1), y.slot), append(s.heldLists.room(1), y.h)
	s.tape = append(s.tape, e)
	if op.Remake != nil && !s.frame.mode.noRecipes && depth(e.saved) < deepest {
		y.remake = e
	}
	return y
}

// opOf is the operation that k describes, which a scope makes once: most layers are alike.
func opOf[K interface {
	comparable
	op() *Op
}](s *Scope, k K) *Op {
	op := s.ops[k]
	if op == nil {
		if s.ops == nil {
			s.ops = map[any]*Op{}
		}
		op = k.op()
		s.ops[k] = op
	}
	return op
}

// operand is o in s, or nil where o is or holds that.
func operand(o Operand, s *Scope) *Tensor {
	if o == nil {
		return nil
	}
	return o.In(s)
}

// lacking is the result of an operation whose operand of that number is nil.
func (s *Scope) lacking(op string, number, of int) *Tensor {
	s.Fail(op, fmt.Errorf("operand %d of %d is nil", number, of))
	return s.blank(Float32, nil)
}

func scopeOf(in []Operand) (s *Scope) {
	for _, o := range in {
		if t, ok := o.(*Tensor); ok && t != nil && (s == nil || s.done) {
			s = t.s
		}
	}
	if s == nil {
		panic("snug: an operation without a tensor; of parameters alone, use p.In(s)")
	}
	return s
}
