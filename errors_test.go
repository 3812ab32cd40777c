package snug

import (
	"errors"
	"strings"
	"testing"

	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/memory"
)

// Where no line of a user's is known, none is named.
func TestNoLineKnown(t *testing.T) {
	w := &site{dev: &Device{}, op: "matmul"}
	_, err := memory.New(dry.Source{}, memory.Config{LimitBytes: 1}).Alloc(memory.Request{Bytes: 1 << 30, Owner: w})
	for got, want := range map[string]string{
		w.String(): "matmul",
		(&OpError{w.op, w.Path(), w.At(), errors.New("no")}).Error(): "matmul: no",
		Recomputed{At: w.At()}.String():                              "a block: recomputing saves nothing: backward reads nothing of it",
		err.Error():                                                  "out of memory: 1.0 GiB for other, matmul (capacity): ",
	} {
		if !strings.HasPrefix(got, want) || strings.Contains(got, " at ") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
