package join

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestErrors(t *testing.T) {
	if err := Errors(nil, nil); err != nil {
		t.Error(err)
	}
	if err := Errors(nil, io.EOF); err != io.EOF {
		t.Error(err)
	}
	err := Errors(io.EOF, nil, fmt.Errorf("second: %w", io.ErrShortWrite))
	if got := err.Error(); got != "EOF; second: short write" {
		t.Error(got)
	}
	if !errors.Is(err, io.EOF) || !errors.Is(err, io.ErrShortWrite) {
		t.Error("errors.Is finds one alone")
	}
}
