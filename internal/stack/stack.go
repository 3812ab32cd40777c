//go:build amd64 || arm64

package stack

// Callers fills pc with return addresses, the caller's own first, and returns how many there
// are. One stands for all calls that were inlined there: runtime.CallersFrames shows them if
// another address follows, were it 0.
//
//go:noescape
func Callers(pc []uintptr) int
