//go:build !cuda

package interop_test

import (
	"testing"

	"gorgonia.org/gorgonia" // under the tag cuda it wants cuDNN 8
)

// Without go4.org/unsafe/assume-no-moving-gc at the version that go.mod requires, both
// modules panic when a program built with this Go starts: this test would not run.
func TestModulesStart(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("x"))
	if x.Name() != "x" {
		t.Error(x.Name())
	}
}
