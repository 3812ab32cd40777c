//go:build !unix && !windows

package host

import (
	"errors"
	"os"
)

const maps = false

func unlink(*os.File) error       { return nil }
func removeFile(f *os.File) error { return os.Remove(f.Name()) }

func mapFile(*os.File, stretch, int) ([]byte, error) { return nil, errors.ErrUnsupported }
func unmapFile([]byte)                               {}
