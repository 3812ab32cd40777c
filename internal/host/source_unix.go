//go:build unix

package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapped(bytes int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", bytes, err)
	}
	return mem, nil
}

// Unmap leaves alone what Map took from Go's heap: Munmap knows only its own.
func (Source) Unmap(mem []byte) { _ = unix.Munmap(mem) }

// Reserve takes addresses that must not be touched before Commit.
func (Source) Reserve(bytes int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d addresses: %w", bytes, err)
	}
	return mem, nil
}

func (Source) Commit(part []byte) error {
	if err := unix.Mprotect(part, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fmt.Errorf("mprotect of %d bytes: %w", len(part), err)
	}
	return nil
}

// Decommit maps addresses without memory over part. Where that fails the memory stays:
// it is written over after the next Commit.
func (Source) Decommit(part []byte) {
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(part)), uintptr(len(part)),
		unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
}
