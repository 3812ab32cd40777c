//go:build race || !(unix || windows)

package host

import "unsafe"

const Growable = false

// segmentAlign is what vector code may rely on.
const segmentAlign = 64

// Map never returns the start of the memory that it takes: see Unmap on Windows.
func (Source) Map(bytes int64) ([]byte, error) {
	mem := make([]byte, bytes+segmentAlign)
	skip := segmentAlign - int64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%segmentAlign)
	return mem[skip:][:bytes:bytes], nil
}
