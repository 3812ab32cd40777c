package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
)

// Status is one line about work under way. On a terminal it is written over again, a few
// times a second; elsewhere a plain line comes every few seconds.
type Status struct {
	w        io.Writer
	terminal bool
	every    time.Duration
	width    int
	dev      *snug.Device

	start, shown time.Time
	total        int64 // samples in the whole run
	done         int64
}

// NewStatus is for a run of total samples.
func NewStatus(f *os.File, d *snug.Device, total int64) *Status {
	s := &Status{w: f, dev: d, total: total, every: 5 * time.Second, start: time.Now()}
	if s.terminal = term.IsTerminal(int(f.Fd())); s.terminal {
		s.every = 200 * time.Millisecond
		if s.width, _, _ = term.GetSize(int(f.Fd())); s.width < 20 {
			s.width = 80
		}
	}
	return s
}

// Add counts samples and, when it is time, shows the line; what asks for the current
// figures, which may wait for the device.
func (s *Status) Add(samples int, what func() string) {
	s.done += int64(samples)
	if time.Since(s.shown) < s.every {
		return
	}
	s.show(what())
}

func (s *Status) show(what string) {
	s.shown = time.Now()
	elapsed := time.Since(s.start)
	rate := float64(s.done) / max(elapsed.Seconds(), 1e-9)
	left := time.Duration(float64(s.total-s.done) / max(rate, 1e-9) * float64(time.Second))
	m := s.dev.Memory().Stats()
	line := fmt.Sprintf("%s, %.0f samples/s, memory %s, peak %s, %s left", what, rate,
		memory.FormatBytes(m.Allocated), memory.FormatBytes(m.Peak.Allocated), left.Round(time.Second))
	if !s.terminal {
		fmt.Fprintln(s.w, line)
		return
	}
	if r := []rune(line); len(r) >= s.width {
		line = string(r[:s.width-1])
	}
	fmt.Fprintf(s.w, "\r\x1b[K%s", line)
}

// Say writes a line that stays.
func (s *Status) Say(format string, args ...any) {
	if s.terminal {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	fmt.Fprintf(s.w, format+"\n", args...)
}

// Elapsed is since NewStatus.
func (s *Status) Elapsed() time.Duration { return time.Since(s.start) }

// Row is a line of a table.
type Row struct{ Name, Value string }

// Table writes the rows, and what the device's memory was for when it was at its peak.
func Table(w io.Writer, d *snug.Device, rows ...Row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name, value string) { fmt.Fprintf(t, "%s\t%s\t\n", name, value) }
	for _, r := range rows {
		line(r.Name, r.Value)
	}
	m := d.Memory().Stats()
	line("peak memory", memory.FormatBytes(m.Peak.Allocated))
	for c, n := range m.AtPeak {
		if n > 0 {
			line("of it "+strings.ToLower(memory.Category(c).String()), memory.FormatBytes(n))
		}
	}
	t.Flush()
}
