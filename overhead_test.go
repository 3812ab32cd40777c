package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
)

// What an operation on 16 elements costs: recorded, and with its backward.
func BenchmarkOverhead(b *testing.B) {
	const operations = 100
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	chain := func(name string, op func(x, y *snug.Tensor) *snug.Tensor, backward bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Train(bg, func(s *snug.Scope) error {
					x := snug.Upload(s, make([]float32, 16), 16).Track()
					y := x
					for range operations {
						y = op(y, x)
					}
					if !backward {
						return nil
					}
					return y.Sum().Backward()
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/operations, "ns/operation")
		})
	}
	add := func(x, y *snug.Tensor) *snug.Tensor { return x.Add(y) }
	relu := func(x, _ *snug.Tensor) *snug.Tensor { return x.ReLU() }
	chain("Add", add, false)
	chain("ReLU", relu, false)
	chain("AddBackward", add, true)
	chain("ReLUBackward", relu, true)
}
