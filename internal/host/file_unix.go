//go:build unix

package host

import (
	"os"

	"golang.org/x/sys/unix"
)

const maps = true

func unlink(f *os.File) error   { return os.Remove(f.Name()) }
func removeFile(*os.File) error { return nil }

func mapFile(f *os.File, s stretch, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), s.off, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapFile(mem []byte) { _ = unix.Munmap(mem) }
