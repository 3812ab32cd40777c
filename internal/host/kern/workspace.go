package kern

import (
	"fmt"
	"runtime"
	"unsafe"
)

type floating interface{ float32 | float64 }

// resolve is the number of threads that par would use.
func resolve(threads int) int {
	if most := runtime.GOMAXPROCS(0); threads <= 0 || threads > most {
		return most
	}
	return threads
}

// An arena hands out parts of a workspace. Without one it only counts, so that the same code tells the size.
type arena struct {
	buf  []byte
	used int
}

const align = 64

func newArena(work []byte) *arena {
	if len(work) == 0 {
		work = make([]byte, 0, 1) // not nil: nothing may be taken
	}
	return &arena{work, int(-uintptr(unsafe.Pointer(unsafe.SliceData(work))) % align)}
}

func (a *arena) size() int64 {
	if a.used == 0 {
		return 0
	}
	return int64(a.used + align)
}

func take[E any](a *arena, n int) []E {
	var e E
	at := a.used
	a.used += (n*int(unsafe.Sizeof(e)) + align - 1) / align * align
	if a.buf == nil || n == 0 {
		return nil
	}
	if a.used > len(a.buf) {
		panic(fmt.Sprintf("kern: workspace of %d bytes is too small", len(a.buf)))
	}
	return unsafe.Slice((*E)(unsafe.Pointer(&a.buf[at])), n)
}
