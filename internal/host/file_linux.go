package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func reserve(f *os.File, s stretch) error {
	err := unix.Fallocate(int(f.Fd()), 0, s.off, s.bytes)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(int(f.Fd()), 0, s.off, s.bytes)
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fill(f, s)
	}
	return err
}
