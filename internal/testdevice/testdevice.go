// Package testdevice is which device tests run on: the CPU, or what SNUG_DEVICE names, as
// "cuda:0".
package testdevice

import (
	"cmp"
	"os"
	"testing"
)

// Name is for snug.Open; Dry is the same without values.
var (
	Name = cmp.Or(os.Getenv("SNUG_DEVICE"), "cpu")
	Dry  = "dry:" + Name
)

// CPU skips a test of what only the CPU has, or does the same way.
func CPU(t testing.TB, why string) {
	t.Helper()
	if Name != "cpu" {
		t.Skipf("on %s: %s", Name, why)
	}
}
