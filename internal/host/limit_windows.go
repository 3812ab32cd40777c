package host

import (
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is the system's MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                                                                uint32
	total, available, totalPage, availablePage, totalVirtual, virtual, extended uint64
}

// Limit is how many bytes the CPU device may reserve where nobody said: the physical
// memory that is available, less a margin.
func Limit() (int64, error) {
	var s memoryStatus
	s.length = uint32(unsafe.Sizeof(s))
	ok, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx").Call(uintptr(unsafe.Pointer(&s)))
	if ok == 0 {
		return 0, fmt.Errorf("host: GlobalMemoryStatusEx: %w", err)
	}
	return lessMargin(int64(min(s.available, math.MaxInt64)))
}
