package main

import "testing"

func TestStreams(t *testing.T) {
	const n = 256
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(i), float32(2*i+1)
	}
	for _, s := range streams {
		dst := make([]float32, n)
		s.run(dst, x, y)
		for i, got := range dst {
			want := x[i]
			if s.bytes == 12 {
				want += 3 * y[i]
			}
			if got != want {
				t.Fatalf("%s: element %d is %v, not %v", s.name, i, got, want)
			}
		}
	}
}
