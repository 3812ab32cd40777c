package stack_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/stack"
)

// functions are the names of the calls around, by pc.
func functions(pc []uintptr) (names []string) {
	frames := runtime.CallersFrames(append(pc, 0))
	for {
		f, more := frames.Next()
		if names = append(names, f.Function); !more {
			return names
		}
	}
}

//go:noinline
func deep(n int, fn func()) {
	if n > 0 {
		inlined(n, fn)
		return
	}
	fn()
}

func inlined(n int, fn func()) { deep(n-1, fn) }

// The calls are those that the runtime sees, inlined ones too, on a goroutine of its own and
// after its stack has moved.
func TestCallers(t *testing.T) {
	for _, n := range []int{0, 3, 100} {
		var got, want []string
		done := make(chan bool)
		go func() {
			defer close(done)
			deep(n, func() {
				var a, b [256]uintptr
				got = functions(a[:stack.Callers(a[:])])
				want = functions(b[:runtime.Callers(2, b[:])])
			})
		}()
		if <-done; !slices.Equal(got, want) || len(got) < 2*n {
			t.Errorf("%d calls deep: %q, want %q", n, got, want)
		}
	}
}

// No more are written than there is room for.
func TestCallersRoom(t *testing.T) {
	pc := []uintptr{1, 1, 1}
	if n := stack.Callers(pc[:2]); n != 2 || pc[0] == 1 || pc[1] == 1 || pc[2] != 1 {
		t.Errorf("%d: %v", n, pc)
	}
	if n := stack.Callers(nil); n != 0 {
		t.Errorf("%d in no room", n)
	}
}

func BenchmarkCallers(b *testing.B) {
	var pc [8]uintptr
	for b.Loop() {
		stack.Callers(pc[:])
	}
}
