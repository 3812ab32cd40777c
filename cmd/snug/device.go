package main

import (
	"fmt"
	"io"

	"github.com/snug-ml/snug"
)

// device prints what snug.Open finds, and where it looked.
func device(w io.Writer) error {
	found, looked := snug.Devices()
	fmt.Fprintln(w, "cpu")
	for _, d := range found {
		fmt.Fprintln(w, d)
	}
	if len(found) == 0 {
		fmt.Fprintln(w, "no CUDA device")
	}
	for _, l := range looked {
		fmt.Fprintln(w, "  "+l)
	}
	return nil
}
