package snug

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/internal/join"
	"github.com/snug-ml/snug/memory"
)

// Config of a device; zero is the device's own limit.
type Config struct {
	LimitBytes int64 // of memory reserved at once
	Threads    int   // that one operation uses; the bits of results do not depend on it
	// TF32 lets cuBLAS round the factors of float32 products to 10 bits of fraction, which
	// is several times as fast on cards from Ampere on. It changes nothing elsewhere.
	TF32 bool
}

// Device is safe for concurrent use.
type Device struct {
	name, backend string
	values        bool          // false in a dry run
	apart         bool          // its memory is not the host's: Go code reads and writes copies
	card          driver.Device // what has that memory; nil on the CPU and in a dry run
	queue         any           // where it runs kernels
	threads       int
	mem, host     *memory.Pool // the host's is where offloaded activations wait
	disks         disks
	state         StatePlace // of optimizers that are made
	stage, bench  stage
	paths         sync.Map // a layer's pointer → its path, from Label
	closed        atomic.Bool
}

// Open opens "cpu"; "cuda:1", the second CUDA device, or "cuda", the first, in a build with
// the tag cuda; or, after "dry:", a device that has the same shapes, workspaces and
// allocator, and no values.
func Open(name string, c Config) (*Device, error) {
	if c.LimitBytes < 0 || c.Threads < 0 {
		return nil, fmt.Errorf("open %s: a limit of %d bytes and %d threads; 0 or more wanted", name, c.LimitBytes, c.Threads)
	}
	d := &Device{name: name, values: true, threads: c.Threads}
	kind, dries := strings.CutPrefix(name, "dry:")
	d.values = !dries
	var err error
	if kind == "cpu" {
		d.backend = kind
		err = d.onHost()
	} else if n, ok := cudaNumber(kind); ok {
		d.backend, d.apart = "cuda", true
		err = d.onCard(n)
	} else {
		err = errors.New("no such device: cpu, cuda, cuda:1 and so on wanted, or dry: before one of them")
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	if c.LimitBytes != 0 {
		d.mem.SetLimit(c.LimitBytes)
	}
	if card, ok := d.card.(interface{ UseTF32() }); ok && c.TF32 {
		card.UseTF32()
	}
	return d, nil
}

// onHost makes the allocators of a device on the host.
func (d *Device) onHost() error {
	own, err := host.Limit()
	if err != nil {
		return err
	}
	var src memory.Source = host.Source{}
	if !d.values {
		src = dry.Source{}
	}
	d.mem = memory.New(src, memory.Config{LimitBytes: own, Growable: host.Growable, Moving: true})
	d.host = memory.New(src, memory.Config{LimitBytes: own, Growable: host.Growable, Moving: true})
	return nil
}

var errClosed = errors.New("the device is closed")

// Close frees all that is still on the device. It may be called again.
func (d *Device) Close() error {
	again := d.closed.Swap(true)
	d.mem.Close()
	d.host.Close()
	err := d.disks.close()
	if d.card != nil && !again {
		err = join.Errors(err, d.card.Close())
	}
	return err
}

// Name is what the device was opened as.
func (d *Device) Name() string { return d.name }

// Memory is the device's allocator: statistics, limits, Summary and Snapshot.
func (d *Device) Memory() *memory.Pool { return d.mem }

// Host is the allocator of host memory that belongs to the device.
func (d *Device) Host() *memory.Pool { return d.host }

// Label records a layer's path, which errors show; an empty one forgets it.
func (d *Device) Label(layer any, path string) {
	if path == "" {
		d.paths.Delete(layer)
		return
	}
	d.paths.Store(layer, path)
}

// Train runs fn as a transaction that records, in training mode. After an error or a
// panic, memory, gradients, buffers and the random position are as before.
func (d *Device) Train(ctx context.Context, fn func(*Scope) error, o ...Option) error {
	return d.run(ctx, "train", mode{record: true, train: true}, fn, o)
}

// Infer runs fn without recording and not in training mode; many goroutines may.
func (d *Device) Infer(ctx context.Context, fn func(*Scope) error, o ...Option) error {
	return d.run(ctx, "infer", mode{}, fn, o)
}

func (d *Device) run(ctx context.Context, name string, m mode, fn func(*Scope) error, o []Option) error {
	m, err := m.with(o)
	switch {
	case d.closed.Load():
		err = errClosed
	case err == nil:
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if d.card != nil {
		defer d.card.Enter()()
	}
	d.mem.Round()
	d.host.Round()
	s := &Scope{ctx: ctx, dev: d, threads: d.useThreads(), cat: memory.Activations}
	s.rescuer, s.sparing = s.rescue, s.forgetOne
	if m.offload != nil {
		s.traffic.ahead = m.offload.ahead
	}
	if m.rand != nil {
		if s.tick, err = m.rand.take(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.rand = m.rand
	s.borrow()
	s.frame = &frame{mode: m, made: s.held}
	returned := false
	defer func() { // fn panicked or left its goroutine: that goes on, unchanged
		if !returned {
			s.abort(errors.New("the scope was left by a panic"))
			s.close()
		}
	}()
	failed := fn(s)
	returned = true
	if err := ctx.Err(); err != nil {
		s.abort(err)
	}
	first := s.err
	if failed != nil {
		if s.abort(failed); s.torn {
			first = s.err
		}
	}
	s.close()
	s.giveBack()
	switch {
	case first == nil:
		return failed
	case failed == nil || errors.Is(first, failed) || errors.Is(failed, first):
		return fmt.Errorf("%s: %w", name, first)
	}
	return fmt.Errorf("%s: %w; then %w", name, first, failed)
}

// useThreads is how many threads a kernel may use.
func (d *Device) useThreads() int {
	if d.threads > 0 {
		return d.threads
	}
	return host.Threads()
}

// launch runs a kernel; work allocates its workspace in the pool.
func (d *Device) launch(k driver.Kernel, a *driver.Args, pool *memory.Pool, work func(bytes int64) (*memory.Block, error)) error {
	if d.closed.Load() {
		return errClosed
	}
	if a.Threads == 0 {
		a.Threads = d.useThreads()
	}
	if k.Workspace != nil {
		if n := k.Workspace(a); n > 0 {
			b, err := work(n)
			if err != nil {
				return err
			}
			defer pool.Free(b)
			a.Work = b.Bytes()
		}
	}
	if d.values {
		a.Queue = d.queue
		k.Run(a)
	}
	return a.Err
}

// firstType is the one that a kernel is registered under.
func firstType(a *driver.Args) DType {
	if len(a.In) > 0 {
		return a.In[0].Type
	}
	return a.Out[0].Type
}
