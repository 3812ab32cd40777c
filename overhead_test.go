package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
)

// One recorded operation on a single element: what the heart costs.
func BenchmarkOperation(b *testing.B) {
	r := newRun(b, "cpu", newMLP())
	b.ReportAllocs()
	for b.Loop() {
		r.dev.Train(bg, func(s *snug.Scope) error {
			x := snug.Upload(s, []float32{1}, 1).Track()
			for range 100 {
				x = x.ReLU()
			}
			return nil
		})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/operation")
}
