package snug

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/snug-ml/snug/memory"
)

// Recomputed is what recomputing a Block was worth.
type Recomputed struct {
	Path  string // of what has all the parameters read inside, else of the layer around
	At    string // the line that called Block, "" if that is not a user's
	Plain int64  // bytes that the operations inside saved in the second run, and would have in the first
	Held  int64  // bytes held instead: arguments, captured tensors and kept results
}

// Saved is negative where recomputing costs memory.
func (r Recomputed) Saved() int64 { return r.Plain - r.Held }

// String is a line such as "layer1.0 at train.go:12: recomputing saves 3.0 MiB of 4.0 MiB".
func (r Recomputed) String() string {
	at := r.Path
	if r.At != "" {
		at = strings.TrimPrefix(at+" at "+r.At, " ")
	}
	at = cmp.Or(at, "a block")
	switch {
	case r.Plain == 0:
		return at + ": recomputing saves nothing: backward reads nothing of it"
	case r.Saved() <= 0:
		return fmt.Sprintf("%s: recomputing saves nothing: it holds %s instead of %s", at, memory.FormatBytes(r.Held), memory.FormatBytes(r.Plain))
	}
	return fmt.Sprintf("%s: recomputing saves %s of %s", at, memory.FormatBytes(r.Saved()), memory.FormatBytes(r.Plain))
}

// OnRecomputed has fn told of each recomputed Block inside: in backward, after its second
// run, or at its end where nothing inside wants a gradient. For package checkpoint.
func OnRecomputed(fn func(Recomputed)) Option {
	return Option{kind: "a report on recomputation", set: func(m *mode) { m.worth = fn }}
}

// worth reports on a recomputed block, whose second run has recorded inside.
func (s *Scope) worth(e *entry, inside []*entry) {
	if fn := e.redo.mode.worth; fn != nil && s.err == nil {
		fn(Recomputed{e.path(), e.site.At(), savedBytes(inside...), savedBytes(e)})
	}
}

// savedBytes counts what entries saved, each storage once, without parameters.
func savedBytes(entries ...*entry) (n int64) {
	seen := map[*storage]bool{}
	var count func([]save)
	count = func(saved []save) {
		for _, v := range saved {
			if v.from == nil && !v.st.fixed && !seen[v.st] {
				seen[v.st] = true
				n += v.st.bytes
			}
			count(v.needs)
		}
	}
	for _, e := range entries {
		count(e.saved)
	}
	return n
}

// path is the longest one that all parameters read in the block have in common.
func (e *entry) path() string {
	var common []string
	first := true
	for _, l := range e.in {
		if l == nil || l.param == nil {
			continue
		}
		names := strings.Split(l.param.name, ".")
		if first {
			common, first = names[:len(names)-1], false
		}
		n := 0
		for n < min(len(common), len(names)) && common[n] == names[n] {
			n++
		}
		common = common[:n]
	}
	if first {
		return e.site.Path()
	}
	return strings.Join(common, ".")
}
