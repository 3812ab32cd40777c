package main

import (
	"slices"
	"sync"
	"time"
)

// stream is a row of elements from memory to memory. Its arrays are whole vectors of 32
// elements at addresses divisible by 32.
type stream struct {
	name  string
	run   func(dst, x, y []float32)
	bytes int // an element
}

var streams = append([]stream{{"copy in Go", func(dst, x, _ []float32) { copy(dst, x) }, 8}}, vectorStreams()...)

const streamLen = 1 << 24 // 64 MiB an array

// bandwidths are the rates of the streams on that many threads, as STREAM (McCalpin, 1995)
// counts: what a plain store reads first is left out.
func bandwidths(threads int) []float64 {
	var arrays [3][]float32
	for i := range arrays {
		arrays[i] = make([]float32, streamLen) // whole pages
		for k := range arrays[i] {
			arrays[i][k] = float32(k % 97)
		}
	}
	rates := make([]float64, len(streams))
	for i, s := range streams {
		var times []float64
		for range 15 {
			start := time.Now()
			var all sync.WaitGroup
			for k := range threads {
				lo, hi := k*streamLen/threads, (k+1)*streamLen/threads
				work := func() { s.run(arrays[0][lo:hi], arrays[1][lo:hi], arrays[2][lo:hi]) }
				if k+1 < threads {
					all.Go(work)
				} else {
					work()
				}
			}
			all.Wait()
			times = append(times, time.Since(start).Seconds())
		}
		slices.Sort(times)
		rates[i] = float64(s.bytes*streamLen) / times[len(times)/2] / 1e9
	}
	return rates
}
