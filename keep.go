package snug

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// policy says which results recomputed blocks keep.
type policy struct {
	keep  func(op string, shape []int, dtype DType, bytes int64) bool
	names []string // or those of operations
}

// KeepResults chooses operations whose results recomputed Blocks inside hold, so that a
// second run does not compute them again. It is asked in the first run, with the result's
// type and bytes; views and operations in place have none of their own. For package
// checkpoint.
func KeepResults(keep func(op string, shape []int, dtype DType, bytes int64) bool) Option {
	o := keepBy(&policy{keep: keep})
	if keep == nil {
		o.err = fmt.Errorf("a checkpoint policy without a function")
	}
	return o
}

// KeepOps chooses operations by their names. Backward fails where nothing that was recomputed
// had one of them. For package checkpoint.
func KeepOps(names ...string) Option { return keepBy(&policy{names: slices.Clone(names)}) }

func keepBy(p *policy) Option {
	return Option{kind: "a checkpoint policy", set: func(m *mode) { m.keep, m.within = p, nil }}
}

// keeps asks a policy. Of one of names the scope notes what it was asked for.
func (s *Scope) keeps(p *policy, op string, y *Tensor) bool {
	if p.keep != nil {
		return p.keep(op, y.Shape(), y.dtype, y.st.bytes)
	}
	if s.met == nil {
		s.met = map[*policy][]string{}
	}
	if met := s.met[p]; !slices.Contains(met, op) {
		s.met[p] = append(met, op)
	}
	return slices.Contains(p.names, op)
}

// unmet reports a name in a policy that no operation had: a misspelt one would keep nothing.
func (s *Scope) unmet() error {
	for p, met := range s.met {
		for _, n := range p.names {
			if !slices.Contains(met, n) {
				return fmt.Errorf("a checkpoint policy keeps the results of %q, and no operation of that name makes one in a recomputed block; there are: %s",
					n, strings.Join(slices.Sorted(slices.Values(met)), ", "))
			}
		}
	}
	return nil
}

// kept is what a recomputed block holds of one operation: its result, and what else
// Forward made and saved.
type kept struct {
	number int // of the operation in the block
	op     string
	saved  []save // the result first

	within *allowance // nil: it stays
	bytes  int64
	dear   float64 // what computing each of them costs
	block  *entry  // once that has ended
}

// unchanged reports whether nothing has been written in place since.
func (k *kept) unchanged() bool {
	return !slices.ContainsFunc(k.saved, func(v save) bool { return v.st.version != v.version })
}

func (k *kept) drop() {
	for _, v := range k.saved {
		v.drop()
	}
}

// forward runs Forward. Where a second run finds the result kept, or needs only what was
// cast for it, Forward computes nothing: it saves its inputs again and takes its draws.
func (c *Call) forward(in []*Tensor) *Tensor {
	s, op := c.s, c.e.op
	c.from = s.serial
	var found *kept
	number := 0
	for f := s.frame; f != nil && !s.frame.up.op; f = f.up {
		if w := f.watch; w != nil && w.redo != nil {
			s.skip = s.skip || 2*w.ops-1 >= w.redo.need
			found = w.redo.find(w.ops - 1)
		} else if w != nil {
			c.first, number = w, w.ops-1
		}
	}
	if s.skip || op.InPlace {
		return c.run(in)
	}
	y := c.kept(found, in)
	if y == nil {
		y = c.run(in)
	}
	if c.first == nil || s.err != nil || y.st == nil || y.st.id <= c.from {
		return y
	}
	k := c.keeps(y)
	if k == nil {
		return y
	}
	k.number = number
	for _, v := range append([]save{y.save("result")}, c.made...) {
		v.hold(c.s)
		k.saved = append(k.saved, v)
	}
	c.first.kept = append(c.first.kept, k)
	return y
}

// keeps is for a result that may be kept, as far as can be known yet; nil: it is not.
func (c *Call) keeps(y *Tensor) *kept {
	m, name := &c.s.frame.mode, c.e.op.Name
	if m.within == nil {
		if m.keep == nil || !c.s.keeps(m.keep, name, y) {
			return nil
		}
		return &kept{op: name}
	}
	if c.e.op.Remake != nil && !m.noRecipes { // nobody holds it
		return nil
	}
	k := &kept{op: name, within: m.within, bytes: y.st.bytes}
	for _, v := range c.made {
		if v.st != y.st {
			k.bytes += v.st.bytes
		}
	}
	k.dear = c.e.cost(y.shape) / float64(max(1, k.bytes))
	if _, ok := k.within.room(k); !ok {
		return nil
	}
	return k
}

// chosen are those of a block's kept results that its second run, of so many steps, will
// need, and for which there is room; the rest is dropped.
func (w *watch) chosen(need int, block *entry) []*kept {
	all := w.kept
	w.kept = nil
	dropped := map[*kept]bool{}
	for _, k := range slices.SortedStableFunc(slices.Values(all), dearer) {
		k.block = block
		if 2*k.number+1 >= need || !k.unchanged() || k.within != nil && !k.within.admit(k) {
			dropped[k] = true
			k.drop()
		}
	}
	return slices.DeleteFunc(all, func(k *kept) bool { return dropped[k] })
}

// run is Forward, of a user's operation perhaps.
func (c *Call) run(in []*Tensor) *Tensor {
	if c.e.op.Forward == nil {
		c.s.fail(c.e.site, errors.New("the operation has no Forward"))
		return in[0]
	}
	y := c.e.op.Forward(c, in...)
	if y == nil {
		c.s.fail(c.e.site, errors.New("its Forward returned nil in place of a tensor"))
		return in[0]
	}
	return y
}

func (r *redo) find(number int) *kept {
	if i := slices.IndexFunc(r.kept, func(k *kept) bool { return k.number == number }); i >= 0 {
		return r.kept[i]
	}
	return nil
}

// kept is the result that the block's first run has kept, nil where there is none: what was
// written in place since is computed again.
func (c *Call) kept(k *kept, in []*Tensor) *Tensor {
	s := c.s
	if k == nil || !k.unchanged() {
		return nil
	}
	if k.op != c.e.op.Name {
		s.fail(s.now, errOtherOperations)
		return in[0]
	}
	s.skip = true
	c.run(in)
	s.skip = false
	y := s.restore(c.e, k.saved[0])
	if s.err != nil {
		return y
	}
	s.serial++
	y.st.id = s.serial // to the blocks around, it is made now
	if c.made = k.saved[1:]; len(c.made) > 0 {
		s.needs(0)
	}
	if c.record {
		for _, v := range c.made {
			v.hold(c.s)
			c.e.saved = append(c.e.saved, v)
		}
	}
	return s.own(y)
}
