package data

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/snug-ml/snug/internal/driver"
)

// pass is the way through the rest of an epoch. There is one buffer more than workers:
// the consumer has one while each worker fills another. Only the consumer's goroutine
// decides what is loaded and in which order it is given.
type pass struct {
	l       *Loader
	epoch   int64
	order   []int
	todo    int // first sample that nobody loads yet
	end     int
	size    int
	free    []*job
	pending []*job    // in order
	given   *job      // the consumer's
	work    chan *job // has room for all jobs
	stopped atomic.Bool
	workers sync.WaitGroup
}

// job is a buffer and what is to be loaded into it.
type job struct {
	buf      Batch
	from, to int
	err      error
	panicked any
	done     chan struct{}
}

func newPass(l *Loader, at LoaderState, end, size int) *pass {
	p := &pass{l: l, epoch: at.Epoch, order: l.order(at.Epoch), todo: at.Sample, end: end, size: size}
	n := min(l.c.Workers+1, (end-at.Sample+size-1)/size)
	for range n {
		j := &job{buf: newBatch(l.spec, min(size, end-at.Sample)), done: make(chan struct{}, 1)}
		j.buf.Mean, j.buf.Std = l.c.Mean, l.c.Std
		p.free = append(p.free, j)
	}
	p.work = make(chan *job, n)
	for range min(l.c.Workers, n) {
		p.workers.Go(func() {
			for j := range p.work {
				p.load(j)
			}
		})
	}
	return p
}

// next is the next batch and the position after it.
func (p *pass) next(ctx context.Context) (Batch, int, error) {
	if p.given != nil {
		p.free = append(p.free, p.given)
		p.given = nil
	}
	for len(p.free) > 0 && p.todo < p.end {
		j := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		j.from, j.to = p.todo, min(p.end, p.todo+p.size)
		p.todo = j.to
		p.pending = append(p.pending, j)
		p.work <- j
	}
	j := p.pending[0]
	p.pending = p.pending[1:]
	if p.l.c.Workers == 0 {
		p.load(<-p.work)
	}
	select {
	case <-j.done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return Batch{}, 0, context.Cause(ctx)
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	p.given = j
	if n := j.to - j.from; n < j.buf.Len() {
		return j.buf.slice(0, n), j.to, j.err
	}
	return j.buf, j.to, j.err
}

func (p *pass) stop() {
	p.stopped.Store(true)
	close(p.work)
	p.workers.Wait()
}

func (p *pass) load(j *job) {
	defer func() { j.done <- struct{}{} }()
	if p.l.c.Workers > 0 {
		defer func() { // a dataset's panic belongs to the goroutine of who ranges
			if v := recover(); v != nil {
				j.panicked = fmt.Sprintf("%v\n\nin the loader's worker:\n%s", v, debug.Stack())
			}
		}()
	}
	j.err = nil
	for k := j.from; k < j.to && j.err == nil && !p.stopped.Load(); k++ {
		i := k
		if p.order != nil {
			i = p.order[k]
		}
		if err := p.read(i, j.buf, k-j.from); err != nil {
			j.err = fmt.Errorf("sample %d: %w", i, err)
		}
	}
}

// read loads sample i into place k of a batch.
func (p *pass) read(i int, b Batch, k int) error {
	spec := &p.l.spec
	size, targets := driver.Numel(spec.Shape), driver.Numel(spec.Target)
	x, y := b.X.slice(k*size, (k+1)*size), b.Y[k*targets:(k+1)*targets:(k+1)*targets]
	if err := p.l.ds.Read(i, x, y); err != nil {
		return err
	}
	if _, err := spec.checkLabels(y); err != nil {
		return err
	}
	if len(p.l.c.Augment) > 0 {
		r := stream(p.l.c.Seed, forAugment, uint64(p.epoch), uint64(i))
		for _, a := range p.l.c.Augment {
			a(x, spec.Shape, r)
		}
	}
	return nil
}
