package snug

import (
	"cmp"
	"fmt"
	"slices"
)

// allowance is the bytes that recomputed blocks may keep, all together: for what is dearest
// to compute by the byte. A result that is dearer than some that are kept takes their place,
// in blocks that have ended, too; so nobody has to know beforehand what is to come.
type allowance struct {
	limit, used int64
	kept        []*kept // the dearest first, of equals the earlier
}

// KeepWithin has recomputed Blocks inside hold results, up to so many bytes of all of them
// together: those that are the dearest to compute by the byte. For package checkpoint.
func KeepWithin(bytes int64) Option {
	o := Option{kind: "a checkpoint policy", set: func(m *mode) { m.keep, m.within = nil, &allowance{limit: bytes} }}
	if bytes < 0 {
		o.err = fmt.Errorf("a checkpoint policy that keeps %d bytes", bytes)
	}
	return o
}

// cost is about how many multiplications a run takes. What is no product waits for memory:
// for each element that it reads or writes there would be time for 16.
func (e *entry) cost(out []int) float64 {
	if e.op.cost != nil {
		return e.op.cost(e.shapes, out)
	}
	n := numel(out)
	for _, in := range e.shapes {
		n += numel(in)
	}
	return 16 * float64(n)
}

// costOfRows is that of a product whose sums go over the rows of its first operand.
func costOfRows(in [][]int, out []int) float64 {
	return float64(numel(out)) * float64(in[0][len(in[0])-1])
}

func dearer(a, b *kept) int { return cmp.Compare(b.dear, a.dear) }

// room says how many of the cheapest would have to go for k, if that is dearer than they.
func (a *allowance) room(k *kept) (victims int, ok bool) {
	free := a.limit - a.used
	for free < k.bytes {
		i := len(a.kept) - 1 - victims
		if i < 0 || a.kept[i].dear >= k.dear {
			return 0, false
		}
		free += a.kept[i].bytes
		victims++
	}
	return victims, true
}

// admit keeps those for which there is room, and drops the rest.
func (a *allowance) admit(k *kept) bool {
	n, ok := a.room(k)
	if !ok {
		return false
	}
	for _, v := range a.kept[len(a.kept)-n:] {
		v.evict()
		a.used -= v.bytes
	}
	a.kept = a.kept[:len(a.kept)-n]
	i, _ := slices.BinarySearchFunc(a.kept, k, func(x, y *kept) int { return cmp.Or(dearer(x, y), -1) }) // behind its equals
	a.kept = slices.Insert(a.kept, i, k)
	a.used += k.bytes
	return true
}

// leave is for what its block does not hold any more.
func (a *allowance) leave(k *kept) {
	if i := slices.Index(a.kept, k); i >= 0 {
		a.kept = slices.Delete(a.kept, i, i+1)
		a.used -= k.bytes
	}
}

// forget is for a block that holds nothing any more.
func (r *redo) forget() {
	for _, k := range r.kept {
		if k.within != nil {
			k.within.leave(k)
		}
	}
	r.kept = nil
}

// evict drops what the entry of a block has kept.
func (k *kept) evict() {
	e := k.block
	e.redo.kept = slices.DeleteFunc(e.redo.kept, func(o *kept) bool { return o == k })
	rest := e.saved[e.redo.own:]
	clear(rest)
	e.saved = e.saved[:e.redo.own]
	for _, o := range e.redo.kept {
		e.saved = append(e.saved, o.saved...)
	}
	k.drop()
}
