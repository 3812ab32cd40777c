package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/snug-ml/snug/examples/internal/run"
	"github.com/snug-ml/snug/memory"
)

func TestTrain(t *testing.T) {
	var b bytes.Buffer
	args := strings.Fields("-data shapes -samples 256 -epochs 2 -batch 32 -accumulate 3 -threads 2")
	if err := train(t.Context(), args, &b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"epoch 2/2: test accuracy ", "\ntest accuracy ", "\npeak memory "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestErrors(t *testing.T) {
	var usage *run.UsageError
	var oom *memory.OutOfMemoryError
	for _, c := range []struct {
		args string
		as   any // nil: any error
	}{
		{"-batch none", &usage},
		{"-data words", &usage},
		{"-data mnist -dir " + t.TempDir(), nil},
		{"-data shapes -samples 64 -device tpu", nil},
		{"-data shapes -samples 64 -limit 1MiB", &oom},
		{"-data shapes -samples 64 -limit 1MiB -device dry:cpu", &oom},
	} {
		err := train(t.Context(), strings.Fields(c.args), &bytes.Buffer{})
		if err == nil || c.as != nil && !errors.As(err, c.as) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}
