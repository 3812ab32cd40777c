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
	row(&b, "limit", FormatBytes(limit))
	row(&b, "cached", FormatBytes(s.Cached()))
	row(&b, "  in one piece", FormatBytes(s.LargestFree))
	row(&b, "used of requested", FormatBytes(s.Used))
	row(&b, "retries", number(s.Retries))
	row(&b, "rescues", number(s.Rescues))
	row(&b, "out of memory", number(s.OutOfMemory))
	b.WriteByte('\n')
	row(&b, "", "now", "peak", "total", "freed")
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
		row(&b, r.name, r.format(r.of(s.Usage)), r.format(r.of(s.Peak)), r.format(r.of(s.Total)), r.format(r.of(s.Freed)))
	}
	writeCategories(&b, s.Categories, &s.AtPeak)
	writeHolders(&b, largest(byPath(held), 10))
	return b.String()
}

func number(n int64) string { return fmt.Sprint(n) }

func row(w io.Writer, name string, cells ...string) {
	fmt.Fprintf(w, "%-18s", name)
	for _, c := range cells {
		fmt.Fprintf(w, "%12s", c)
	}
	fmt.Fprintln(w)
}

// writeCategories leaves out those without bytes; peak may be nil.
func writeCategories(w io.Writer, now ByCategory, peak *ByCategory) {
	head := []string{"now"}
	if peak != nil {
		head = append(head, "at peak")
	}
	fmt.Fprintln(w)
	row(w, "allocated for", head...)
	for c, n := range now {
		cells := []string{FormatBytes(n)}
		if peak != nil {
			cells, n = append(cells, FormatBytes(peak[c])), max(n, peak[c])
		}
		if n != 0 {
			row(w, Category(c).String(), cells...)
		}
	}
}

func writeHolders(w io.Writer, l []Holder) {
	if len(l) == 0 || len(l) == 1 && l[0].Path == "" {
		return
	}
	fmt.Fprintln(w, "\nheld by")
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
