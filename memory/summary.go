package memory

import (
	"fmt"
	"io"
	"strings"
)

// Summary is a table for people: the statistics, what memory is for and who holds most
// of it.
func (p *Pool) Summary() string {
	p.mu.Lock()
	s, limit, held := p.read(), p.limit, p.held()
	p.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "limit %s, cached %s of which %s in one piece, %d out of memory, %d retries, %d rescues\n\n",
		FormatBytes(limit), FormatBytes(s.Cached()), FormatBytes(s.LargestFree), s.OutOfMemory, s.Retries, s.Rescues)
	fmt.Fprintf(&b, "%-18s%12s%12s%12s%12s\n", "", "now", "peak", "total", "freed")
	for _, r := range []struct {
		name   string
		of     func(Usage) int64
		format func(int64) string
	}{
		{"requested", func(u Usage) int64 { return u.Requested }, FormatBytes},
		{"allocated", func(u Usage) int64 { return u.Allocated }, FormatBytes},
		{"active", func(u Usage) int64 { return u.Active }, FormatBytes},
		{"reserved", func(u Usage) int64 { return u.Reserved }, FormatBytes},
		{"inactive split", func(u Usage) int64 { return u.InactiveSplit }, FormatBytes},
		{"segments", func(u Usage) int64 { return u.Segments }, number},
		{"blocks", func(u Usage) int64 { return u.Blocks }, number},
	} {
		fmt.Fprintf(&b, "%-18s%12s%12s%12s%12s\n", r.name, r.format(r.of(s.Usage)), r.format(r.of(s.Peak)), r.format(r.of(s.Total)), r.format(r.of(s.Freed)))
	}
	if s.Used != s.Requested {
		fmt.Fprintf(&b, "%-18s%12s\n", "used", FormatBytes(s.Used))
	}
	writeCategories(&b, s.Categories, &s.AtPeak)
	writeHolders(&b, largest(byPath(held), 10))
	return b.String()
}

func number(n int64) string { return fmt.Sprint(n) }

func writeCategories(w io.Writer, now ByCategory, peak *ByCategory) {
	fmt.Fprintln(w)
	for c, n := range now {
		switch {
		case peak != nil && (n != 0 || peak[c] != 0):
			fmt.Fprintf(w, "%-18s%12s%12s\n", Category(c), FormatBytes(n), FormatBytes(peak[c]))
		case peak == nil && n != 0:
			fmt.Fprintf(w, "%-18s%12s\n", Category(c), FormatBytes(n))
		}
	}
}

func writeHolders(w io.Writer, l []Holder) {
	if len(l) == 0 || len(l) == 1 && l[0].Path == "" {
		return
	}
	fmt.Fprintln(w)
	for _, h := range l {
		if h.Path == "" {
			h.Path = "(no module)"
		}
		fmt.Fprintf(w, "%12s  %s\n", FormatBytes(h.Bytes), h.Path)
	}
}

// Live has a line for every block that is not freed, with its owner and, where only a
// part is still used, what keeps it; empty if there is none. Tests report leaks by it.
func (p *Pool) Live() string {
	var b strings.Builder
	for _, s := range p.Snapshot().Segments {
		for _, r := range s.Regions {
			if r.State != Active {
				continue
			}
			fmt.Fprintf(&b, "%12s  %s", FormatBytes(r.Bytes), r.Category)
			b.WriteString(where(r.Path, r.Op, r.At))
			if r.Used != r.Requested {
				fmt.Fprintf(&b, "; %s used", FormatBytes(r.Used))
			}
			if r.PinnedBy != "" {
				b.WriteString(", pinned by " + r.PinnedBy)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
