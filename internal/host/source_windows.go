package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

func virtual(bytes int64, kind, protect uint32) ([]byte, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(bytes), kind, protect)
	if err != nil {
		return nil, fmt.Errorf("VirtualAlloc of %d bytes: %w", bytes, err)
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), bytes), nil
}

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

func mapped(bytes int64) ([]byte, error) {
	return virtual(bytes, windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
}

// Unmap leaves alone what Map took from Go's heap: that is not where an allocation of
// the system begins.
func (Source) Unmap(mem []byte) { _ = windows.VirtualFree(address(mem), 0, windows.MEM_RELEASE) }

// Reserve takes addresses that must not be touched before Commit.
func (Source) Reserve(bytes int64) ([]byte, error) {
	return virtual(bytes, windows.MEM_RESERVE, windows.PAGE_NOACCESS)
}

func (Source) Commit(part []byte) error {
	if _, err := windows.VirtualAlloc(address(part), uintptr(len(part)), windows.MEM_COMMIT, windows.PAGE_READWRITE); err != nil {
		return fmt.Errorf("VirtualAlloc of %d bytes: %w", len(part), err)
	}
	return nil
}

func (Source) Decommit(part []byte) {
	_ = windows.VirtualFree(address(part), uintptr(len(part)), windows.MEM_DECOMMIT)
}
