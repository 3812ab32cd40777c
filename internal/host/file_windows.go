package host

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

const maps = true

// unlink cannot: a file that is open keeps its name.
func unlink(*os.File) error       { return nil }
func removeFile(f *os.File) error { return os.Remove(f.Name()) }

func mapFile(f *os.File, s stretch, n int) ([]byte, error) {
	end := uint64(s.off + s.bytes)
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READWRITE, uint32(end>>32), uint32(end), nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(h) // the view holds it
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_WRITE, uint32(s.off>>32), uint32(s.off), uintptr(n))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil
}

func unmapFile(mem []byte) { _ = windows.UnmapViewOfFile(address(mem)) }
