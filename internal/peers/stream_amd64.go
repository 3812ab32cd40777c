package main

import "golang.org/x/sys/cpu"

// vectorStreams are those in vector code: x, and x + 3·y. The last two store past the
// caches, so that what they overwrite is not read first.
func vectorStreams() []stream {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return nil
	}
	row := func(f func(dst, x, y *float32, n int)) func(dst, x, y []float32) {
		return func(dst, x, y []float32) { f(&dst[0], &x[0], &y[0], len(dst)) }
	}
	return []stream{
		{"copy", row(copyVec), 8},
		{"triad", row(triadVec), 12},
		{"copy, non-temporal stores", row(copyPastVec), 8},
		{"triad, non-temporal stores", row(triadPastVec), 12},
	}
}

//go:noescape
func copyVec(dst, x, y *float32, n int)

//go:noescape
func triadVec(dst, x, y *float32, n int)

//go:noescape
func copyPastVec(dst, x, y *float32, n int)

//go:noescape
func triadPastVec(dst, x, y *float32, n int)
