// Package par runs loops on a pool of goroutines that outlive them.
//
// A worker spins for a moment after its last loop, so that kernels in quick succession find it awake, and then
// parks: an idle pool costs nothing. No call ever waits for a worker to begin: where all are at work, in nested and
// concurrent loops, the caller does everything itself and takes its offer back.
package par

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// spin is how long an idle worker, or a caller whose helpers are not done, burns a core before it parks:
// longer than the gap between two operations, and what waking a parked goroutine costs several times over.
const spin = 100 * time.Microsecond

// For calls fn(0), …, fn(n-1), each once, on at most threads goroutines, of which the caller is one, and returns
// when all are done. Threads of 0 or less, or above GOMAXPROCS, mean GOMAXPROCS. Who is free takes the next index.
// After a panic in fn further calls are left out, and For panics with its value.
func For(threads, n int, fn func(i int)) {
	if most := runtime.GOMAXPROCS(0); threads <= 0 || threads > most {
		threads = most
	}
	if threads = min(threads, n); threads <= 1 {
		for i := range n {
			fn(i)
		}
		return
	}
	j := newJob()
	j.fn, j.n = fn, int64(n)
	j.done.Add(1)
	ws := workers(threads - 1)
	asked := 0
	// Those at work are asked last: most often they have just finished the loop before this one.
	for _, working := range [...]bool{false, true} {
		for _, w := range ws {
			if asked < threads-1 && w.working.Load() == working && w.offer(j) {
				asked++
			}
		}
	}
	j.run()
	for _, w := range ws {
		w.offered.CompareAndSwap(j, nil)
	}
	for rest := newSpinner(); j.finished.Load() < j.n; {
		if !rest.again() {
			j.done.Wait()
			break
		}
	}
	if p := j.panicked.Load(); p != nil {
		panic(*p)
	}
}

// Range cuts [0, n) into chunks of grain (the last may be shorter), whatever the number of threads, and runs
// them as For does. A single chunk runs at once.
func Range(threads, n, grain int, fn func(lo, hi int)) {
	switch {
	case n <= 0:
	case n <= grain:
		fn(0, n)
	default:
		For(threads, (n+grain-1)/grain, func(i int) { fn(i*grain, min((i+1)*grain, n)) })
	}
}

// jobs are to be handed out, many from one allocation of Go's. None is used twice: a worker may look at one for longer
// than its loop takes.
var jobs = sync.Pool{New: func() any { return new([]job) }}

func newJob() *job {
	s := jobs.Get().(*[]job)
	defer jobs.Put(s)
	if len(*s) == 0 {
		*s = make([]job, 32)
	}
	j := &(*s)[0]
	*s = (*s)[1:]
	return j
}

// A job is one loop.
type job struct {
	fn             func(int)
	n              int64
	next, finished atomic.Int64
	done           sync.WaitGroup // of the call that finishes last
	panicked       atomic.Pointer[any]
}

func (j *job) run() {
	for i := j.next.Add(1) - 1; i < j.n; i = j.next.Add(1) - 1 {
		j.call(int(i))
	}
}

func (j *job) call(i int) {
	defer func() {
		if r := recover(); r != nil {
			first := r // r itself would be on the heap in every call
			j.panicked.CompareAndSwap(nil, &first)
		}
		if j.finished.Add(1) == j.n {
			j.done.Done()
		}
	}()
	if j.panicked.Load() == nil {
		j.fn(i)
	}
}

type worker struct {
	offered atomic.Pointer[job] // not begun yet
	working atomic.Bool
	parked  atomic.Bool // who clears it owes or is spared the wake
	wake    chan struct{}
	_       [64]byte // no other worker's cache line
}

// offer reports whether the worker had no other offer.
func (w *worker) offer(j *job) bool {
	if w.offered.Load() != nil || !w.offered.CompareAndSwap(nil, j) {
		return false
	}
	if w.parked.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
	return true
}

func (w *worker) loop() {
	for {
		for rest := newSpinner(); w.offered.Load() == nil; {
			if rest.again() {
				continue
			}
			w.parked.Store(true)
			if w.offered.Load() == nil || !w.parked.CompareAndSwap(true, false) {
				<-w.wake
			}
			rest = newSpinner()
		}
		w.working.Store(true)
		if j := w.offered.Swap(nil); j != nil {
			j.run()
		}
		w.working.Store(false)
	}
}

var (
	pool   atomic.Pointer[[]*worker]
	growth sync.Mutex
)

// workers returns all there are, starting some if they are fewer than n.
func workers(n int) []*worker {
	if ws := pool.Load(); ws != nil && len(*ws) >= n {
		return *ws
	}
	growth.Lock()
	defer growth.Unlock()
	var ws []*worker
	if old := pool.Load(); old != nil {
		ws = append(ws, *old...)
	}
	for len(ws) < n {
		w := &worker{wake: make(chan struct{}, 1)}
		go w.loop()
		ws = append(ws, w)
	}
	pool.Store(&ws)
	return ws
}

type spinner struct {
	start time.Time
	turns int
}

func newSpinner() spinner { return spinner{start: time.Now()} }

// again waits a moment, and reports whether there may be another one. Now and then it lets other goroutines run.
func (s *spinner) again() bool {
	pause()
	if s.turns++; s.turns%16 != 0 {
		return true
	}
	runtime.Gosched()
	return time.Since(s.start) < spin
}
