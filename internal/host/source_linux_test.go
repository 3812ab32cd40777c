package host

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/snug-ml/snug/memory"
)

var _ memory.Mover = Source{}

// resident is the process's memory from /proc/self/statm, without Go's own garbage.
func resident(t *testing.T) int64 {
	t.Helper()
	for range 2 { // a sync.Pool lets go in the second
		debug.FreeOSMemory()
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc/self/statm: ", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// within fails unless resident memory has grown by want since before, or by 10 % of
// what was touched more or less.
func within(t *testing.T, what string, before, want, touched int64) {
	t.Helper()
	if d := resident(t) - before - want; d < -touched/10 || d > touched/10 {
		t.Errorf("%s: resident memory grew by %d, not %d", what, d+want, want)
	}
}

func touch(mem []byte) {
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
}

// Memory that is unmapped or decommitted is the system's again.
func TestSourceGivesBack(t *testing.T) {
	const n = 128 << 20
	var s Source
	before := resident(t)
	if !raceEnabled {
		mem, err := s.Map(n)
		if err != nil {
			t.Fatal(err)
		}
		within(t, "mapped", before, 0, n)
		touch(mem)
		within(t, "touched", before, n, n)
		s.Unmap(mem)
		within(t, "unmapped", before, 0, n)
	}

	mem, err := s.Reserve(1 << 36)
	if err != nil {
		t.Fatal(err)
	}
	part := mem[4<<20:][:n]
	for range 2 {
		if err := s.Commit(part); err != nil {
			t.Fatal(err)
		}
		if part[0] != 0 {
			t.Error("memory that came back was not new")
		}
		touch(part)
		within(t, "committed", before, n, n)
		s.Decommit(part)
		within(t, "decommitted", before, 0, n)
	}
	if err := s.Commit(part); err != nil {
		t.Fatal(err)
	}
	touch(part)
	other := mem[8<<20+n:][:n]
	for range 2 {
		if err := s.Move(other, part); err != nil {
			t.Fatal(err)
		}
		within(t, "moved", before, n, n)
		touch(other)
		within(t, "moved and touched", before, n, n)
		part, other = other, part
	}
	s.Decommit(part)
	within(t, "moved and decommitted", before, 0, n)
	s.Unmap(mem)
}

// The same through a pool: EmptyCache lowers what the process has.
func TestPoolGivesBack(t *testing.T) {
	const n = 256 << 20 // beside which an emulator's own memory is little
	for _, growable := range []bool{false, true} {
		if raceEnabled && !growable {
			continue
		}
		p := memory.New(Source{}, memory.Config{LimitBytes: 2 << 30, Growable: growable})
		before := resident(t)
		b, err := p.Alloc(memory.Request{Bytes: n})
		if err != nil {
			t.Fatal(err)
		}
		touch(b.Bytes())
		p.Free(b)
		within(t, "cached", before, n, n)
		p.EmptyCache()
		within(t, "emptied", before, 0, n)
		p.Close()
	}
}
