package run

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
)

// Status is one line about work under way. On a terminal it is written over again, a few
// times a second; elsewhere a plain line comes every few seconds.
type Status struct {
	w     io.Writer
	dev   *snug.Device
	width func() int // of the terminal; 0 where there is none
	every time.Duration
	now   func() time.Time

	total, done int64 // samples of the whole run, and those behind us
	start       time.Time
	shown       time.Time
	phase       string
	phaseStart  time.Time
	phaseDone   int64
}

// NewStatus is for a run of total samples on d.
func NewStatus(w io.Writer, d *snug.Device, total int64) *Status {
	s := &Status{w: w, dev: d, total: total, now: time.Now, every: 5 * time.Second, width: func() int { return 0 }}
	to := w
	if o, ok := w.(*output); ok {
		to = o.Writer
	}
	if f, ok := to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.every = 200 * time.Millisecond
		s.width = func() int {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
			return 80
		}
	}
	s.start = s.now()
	s.shown = s.start
	return s
}

// Phase begins a part of the run, by which the line begins and whose speed it shows.
func (s *Status) Phase(name string) {
	s.phase, s.phaseStart, s.phaseDone = name, s.now(), 0
}

// Add counts samples that are done and, when it is time, shows the line; figures gives
// what else is in it, and may wait for the device.
func (s *Status) Add(samples int, figures func() (string, error)) error {
	s.done += int64(samples)
	s.phaseDone += int64(samples)
	now := s.now()
	if now.Sub(s.shown) < s.every {
		return nil
	}
	s.shown = now
	text, err := figures()
	if err != nil {
		return err
	}
	m := s.dev.Memory().Stats()
	line := fmt.Sprintf("%s  %s  %s, peak %s  %v left  %.0f samples/s", s.phase, text,
		memory.FormatBytes(m.Allocated), memory.FormatBytes(m.Peak.Allocated), s.left(now), s.Rate())
	width := s.width()
	if width == 0 {
		fmt.Fprintln(s.w, line)
		return nil
	}
	if r := []rune(line); len(r) >= width { // a line that wraps could not be written over
		line = string(r[:width-1])
	}
	fmt.Fprintf(s.w, "\r\x1b[K%s", line)
	return nil
}

// Rate is samples a second in this phase.
func (s *Status) Rate() float64 {
	return float64(s.phaseDone) / max(s.now().Sub(s.phaseStart).Seconds(), 1e-9)
}

func (s *Status) left(now time.Time) time.Duration {
	each := now.Sub(s.start) / time.Duration(max(s.done, 1))
	return (time.Duration(s.total-s.done) * each).Round(time.Second)
}

// Say writes a line that stays.
func (s *Status) Say(format string, args ...any) {
	s.Clear()
	fmt.Fprintf(s.w, format+"\n", args...)
}

// Clear takes the line off a terminal.
func (s *Status) Clear() {
	if s.width() > 0 {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}

// Elapsed is since NewStatus.
func (s *Status) Elapsed() time.Duration { return s.now().Sub(s.start) }
