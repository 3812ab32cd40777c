package host

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// moved has the pages change their addresses, which costs a tenth of giving them back and
// getting new ones, which the system would clear. from stays reserved meanwhile, so that no
// other thread's memory comes to be there.
func moved(to, from []byte) bool {
	_, err := unix.MremapPtr(unsafe.Pointer(unsafe.SliceData(from)), uintptr(len(from)), unsafe.Pointer(unsafe.SliceData(to)), uintptr(len(to)),
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED|unix.MREMAP_DONTUNMAP)
	return err == nil && unix.Mprotect(from, unix.PROT_NONE) == nil
}
