package par

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// procs gives the test more processors than the machine may have.
func procs(tb testing.TB, n int) {
	old := runtime.GOMAXPROCS(n)
	tb.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

func checkOnce(t *testing.T, threads, n int) {
	t.Helper()
	calls := make([]int, n) // plain ints: the race detector sees a second call
	For(threads, n, func(i int) { calls[i]++ })
	for i, c := range calls {
		if c != 1 {
			t.Fatalf("threads %d, n %d: fn(%d) ran %d times", threads, n, i, c)
		}
	}
}

func TestForRunsEachOnce(t *testing.T) {
	procs(t, 4)
	for range 50 {
		for _, threads := range []int{-1, 0, 1, 2, 3, 4, 100} {
			for _, n := range []int{0, 1, 2, 3, 17, 1000} {
				checkOnce(t, threads, n)
			}
		}
	}
}

func TestForIsParallelAndBounded(t *testing.T) {
	procs(t, 4)
	for _, threads := range []int{1, 2, 3, 4} {
		var now, most atomic.Int64
		For(threads, 40, func(int) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Millisecond)
			now.Add(-1)
		})
		if got := most.Load(); got != int64(threads) {
			t.Errorf("threads %d: %d calls at once", threads, got)
		}
	}
}

func TestForAfterParking(t *testing.T) {
	procs(t, 3)
	for range 5 {
		checkOnce(t, 0, 100)
		time.Sleep(20 * spin)
	}
}

func TestForNestedAndConcurrent(t *testing.T) {
	procs(t, 4)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				var sum atomic.Int64
				For(0, 5, func(i int) {
					For(0, 7, func(k int) { sum.Add(int64(i*7 + k)) })
				})
				if sum.Load() != 34*35/2 {
					t.Errorf("sum %d", sum.Load())
				}
			}
		})
	}
	wg.Wait()
}

func TestForPanics(t *testing.T) {
	procs(t, 4)
	for _, threads := range []int{1, 2, 4} {
		for bad := range 20 {
			func() {
				defer func() {
					if r := recover(); r != fmt.Sprint("no ", bad) {
						t.Errorf("threads %d: recovered %v", threads, r)
					}
				}()
				For(threads, 20, func(i int) {
					if i == bad {
						panic(fmt.Sprint("no ", i))
					}
				})
				t.Errorf("threads %d: no panic", threads)
			}()
			checkOnce(t, threads, 20) // the workers survived
		}
	}
}

func TestRange(t *testing.T) {
	procs(t, 3)
	for _, n := range []int{-1, 0, 1, 9, 10, 11, 95} {
		for _, threads := range []int{1, 2, 3} {
			var mu sync.Mutex
			chunks := map[int]int{}
			Range(threads, n, 10, func(lo, hi int) {
				mu.Lock()
				chunks[lo] = hi
				mu.Unlock()
			})
			lo := 0
			for ; lo < n; lo += 10 {
				if chunks[lo] != min(lo+10, n) {
					t.Errorf("n %d: chunk [%d, %d)", n, lo, chunks[lo])
				}
			}
			if len(chunks) != lo/10 {
				t.Errorf("n %d: %d chunks", n, len(chunks))
			}
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	for b.Loop() {
		For(2, 2, func(int) {})
	}
}
