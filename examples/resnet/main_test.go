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
	args := strings.Fields("-data shapes -samples 24 -epochs 2 -batch 8 -accumulate 2")
	if err := train(t.Context(), args, &b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"epoch 2/2: test accuracy ", "\ntest accuracy ", "\npeak memory "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Every model runs a step without values, and says what memory it needs.
func TestModels(t *testing.T) {
	for _, name := range []string{"small", "resnet18", "resnet34", "resnet50"} {
		var b bytes.Buffer
		err := train(t.Context(), strings.Fields("-device dry:cpu -data shapes -samples 4 -batch 4 -model "+name), &b)
		if err != nil || !strings.Contains(b.String(), "\npeak memory ") || !strings.Contains(b.String(), "\n  activations ") {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}

func TestErrors(t *testing.T) {
	var usage *run.UsageError
	var oom *memory.OutOfMemoryError
	for _, c := range []struct {
		args string
		as   any
	}{
		{"-model resnet19 -data shapes", &usage},
		{"-data shapes -samples 32 -batch 32 -limit 4MiB", &oom},
	} {
		if err := train(t.Context(), strings.Fields(c.args), &bytes.Buffer{}); !errors.As(err, c.as) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}
