//go:build !amd64 && !arm64

package stack

import "runtime"

func Callers(pc []uintptr) int { return runtime.Callers(2, pc) }
