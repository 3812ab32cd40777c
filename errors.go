package snug

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/snug-ml/snug/internal/driver"
)

// What errors.Is tells apart; memory.ErrOutOfMemory is one more.
var (
	ErrShape      = errors.New("shapes do not fit")
	ErrDType      = errors.New("types do not fit")
	ErrFreed      = errors.New("already freed")
	ErrInUse      = errors.New("in use")
	ErrIncomplete = errors.New("incomplete gradient")
	ErrTorn       = errors.New("parameters are partly updated: load the last saved state")
	ErrNoValues   = errors.New("a dry run has no values")
	ErrDeviceLost = driver.ErrDeviceLost // and every call says so from then on
)

// OpError says which operation failed, in which layer, and on which line.
type OpError struct {
	Op, Path, At string
	Err          error
}

func (e *OpError) Unwrap() error { return e.Err }
func (e *OpError) Error() string {
	s := fmt.Sprintf("%s: %v, at %s", e.Op, e.Err, e.At)
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	return s
}

type tornError struct{ first error }

func (e *tornError) Error() string   { return ErrTorn.Error() + ": " + e.first.Error() }
func (e *tornError) Unwrap() []error { return []error{ErrTorn, e.first} }

// site is where something was made: an operation in a layer, called on a line. It is a
// memory.Owner; nothing of it is resolved before it is shown.
type site struct {
	dev   *Device
	op    string
	pc    []uintptr // from the call on, up to the first line of a user
	layer any       // the innermost one entered
	last  *Param    // the last one read
}

func (s *Scope) site(op string) *site {
	w := s.sites.new()
	w.dev, w.op, w.last = s.dev, op, s.last
	if n := len(s.layers); n > 0 {
		w.layer = s.layers[n-1]
	}
	var pc calls
	n := runtime.Callers(3, pc[:s.behind+1])
	user := pc.user(n)
	if user < 0 { // behind more layers than last time
		n = runtime.Callers(3, pc[:])
		user = pc.user(n)
	}
	if user >= 0 {
		n, s.behind = user+1, user
	}
	w.pc = append(s.pcs.room(n), pc[:n]...)
	return w
}

// here is the place of a call that belongs to no scope.
func (d *Device) here(op string, p *Param) *site {
	var pc calls
	n := runtime.Callers(3, pc[:])
	if user := pc.user(n); user >= 0 {
		n = user + 1
	}
	w := &struct {
		site
		pc [8]uintptr
	}{site: site{dev: d, op: op, last: p}}
	w.site.pc = append(w.pc[:0], pc[:n]...)
	return &w.site
}

// calls are program counters, the innermost first. A user's call is behind those of nested
// layers.
type calls [32]uintptr

// user is which of the first n is a user's, -1 for none.
func (pc *calls) user(n int) int {
	for i, c := range pc[:n] {
		known := &places[c%uintptr(len(places))]
		v := known.Load()
		if v>>1 != c {
			v = c << 1
			if f, _ := runtime.CallersFrames([]uintptr{c}).Next(); f.File != "" && isUser(f.File) {
				v |= 1
			}
			known.Store(v)
		}
		if v&1 != 0 {
			return i
		}
	}
	return -1
}

// places remembers of program counters, shifted by a bit, whether they are a user's.
var places [1021]atomic.Uintptr

func (w *site) Op() string { return w.op }

// Path names the layer, or without one the owner of the last parameter read.
func (w *site) Path() string {
	if reflect.ValueOf(w.layer).Comparable() { // a layer that is a slice has no path
		if p, ok := w.dev.paths.Load(w.layer); ok {
			return p.(string)
		}
	}
	if w.last != nil {
		return w.last.name[:max(0, strings.LastIndexByte(w.last.name, '.'))]
	}
	return ""
}

// module is the folder of this module's sources. Its tests, examples and commands are
// users of it.
var module = func() string { _, file, _, _ := runtime.Caller(0); return filepath.Dir(file) + "/" }()

// goroot is the folder of the standard library's sources, "" in a trimmed build.
var goroot = func() string {
	pc := reflect.ValueOf(slices.IsSorted[[]int]).Pointer()
	file, _ := runtime.FuncForPC(pc).FileLine(pc)
	dir, _, _ := strings.Cut(file, "slices/")
	return dir
}()

func isUser(file string) bool {
	if goroot != "" && strings.HasPrefix(file, goroot) || file == "slices/iter.go" { // an iterator between us
		return false
	}
	in, ok := strings.CutPrefix(file, module)
	return !ok || strings.HasSuffix(in, "_test.go") || strings.HasPrefix(in, "examples/") || strings.HasPrefix(in, "cmd/")
}

// At is the first line outside this module, as file:line. It goes by the file: an
// inlined closure bears the name of the function that it was inlined into.
func (w *site) At() string {
	frames := runtime.CallersFrames(w.pc)
	for {
		f, more := frames.Next()
		if f.File != "" && isUser(f.File) {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "?"
		}
	}
}

func (w *site) String() string { return w.op + " at " + w.At() }
