//go:build !unix && !windows

package host

import (
	"errors"
	"os"
)

func unlink(f *os.File) error     { return errors.ErrUnsupported }
func removeFile(f *os.File) error { return os.Remove(f.Name()) }

func mapFile(*os.File, stretch, int) ([]byte, error) { return nil, errors.ErrUnsupported }
func unmapFile([]byte)                               {}
