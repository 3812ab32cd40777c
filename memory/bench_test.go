package memory_test

import (
	"fmt"
	"testing"

	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/memory"
)

// The steady state of training: a step's blocks come and go in the same order, and all
// of them come from the cache.
func BenchmarkAllocFree(b *testing.B) {
	for _, live := range []int{1, 100, 2000} {
		b.Run(fmt.Sprint("live=", live), func(b *testing.B) {
			p := memory.New(dry.Source{}, memory.Config{LimitBytes: 1 << 40})
			r := memory.Request{Owner: owner("layer"), Category: memory.Activations}
			ring := make([]*memory.Block, live)
			i := 0
			next := func() {
				if ring[i%live] != nil {
					p.Free(ring[i%live])
				}
				r.Bytes = int64(1+i%7) << (8 + 2*(i%6))
				var err error
				if ring[i%live], err = p.Alloc(r); err != nil {
					b.Fatal(err)
				}
				i++
			}
			for range 4 * live * 42 {
				next()
			}
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
		})
	}
}

// Statistics are read at every operation that is profiled.
func BenchmarkStats(b *testing.B) {
	p := memory.New(dry.Source{}, memory.Config{LimitBytes: 1 << 40})
	for range 1000 {
		if _, err := p.Alloc(memory.Request{Bytes: 4096}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		p.Stats()
	}
}
