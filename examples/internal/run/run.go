// Package run is what the example programs share around their training: flags, a clean
// stop, the status line and the closing table. How to train is in the examples.
package run

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
)

// Flags are those that every example has.
type Flags struct {
	Device     string
	Epochs     int
	Batch      int
	Accumulate int // micro-batches that one step adds up
	Seed       uint64
	Limit      Bytes
	Threads    int
}

// Register declares the flags with the values in f as defaults.
func (f *Flags) Register(fs *flag.FlagSet) {
	fs.StringVar(&f.Device, "device", cmp.Or(f.Device, "cpu"), "`device` to train on")
	fs.IntVar(&f.Epochs, "epochs", f.Epochs, "passes over the training set")
	fs.IntVar(&f.Batch, "batch", f.Batch, "samples in one step")
	fs.IntVar(&f.Accumulate, "accumulate", cmp.Or(f.Accumulate, 1), "micro-batches that a step is cut into: less memory, the same step")
	fs.Uint64Var(&f.Seed, "seed", cmp.Or(f.Seed, 1), "of first weights, order and dropout")
	fs.Var(&f.Limit, "limit", "most memory of the device, such as 512MiB; 0: the device's own limit")
	fs.IntVar(&f.Threads, "threads", f.Threads, "that an operation uses; 0: one a processor")
}

// Check says which flag is wrong.
func (f *Flags) Check() error {
	for name, v := range map[string]int{"epochs": f.Epochs, "batch": f.Batch, "accumulate": f.Accumulate} {
		if v < 1 {
			return fmt.Errorf("-%s is %d, 1 or more wanted", name, v)
		}
	}
	if f.Accumulate > f.Batch {
		return fmt.Errorf("-accumulate %d: a batch of %d samples has not so many parts", f.Accumulate, f.Batch)
	}
	return nil
}

// Micro is how many samples run through the model at once.
func (f *Flags) Micro() int { return (f.Batch + f.Accumulate - 1) / f.Accumulate }

func (f *Flags) Open() (*snug.Device, error) {
	return snug.Open(f.Device, snug.Config{LimitBytes: int64(f.Limit), Threads: f.Threads})
}

// Bytes is a flag such as 512MiB, 2GiB or 1000000.
type Bytes int64

func (b *Bytes) String() string { return memory.FormatBytes(int64(*b)) }

func (b *Bytes) Set(text string) error {
	n, unit := text, int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if t, ok := strings.CutSuffix(text, suffix); ok {
			n, unit = t, size
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
	if err != nil || !(v >= 0) || v*float64(unit) > 1<<60 {
		return fmt.Errorf("a number of bytes wanted, such as 512MiB")
	}
	*b = Bytes(v * float64(unit))
	return nil
}

// Main runs fn, which the first Ctrl-C stops cleanly, and ends the process with what came
// of it.
func Main(fn func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	err := fn(ctx)
	var oom *memory.OutOfMemoryError
	switch {
	case errors.As(err, &oom):
		fmt.Fprintln(os.Stderr, err)
		fmt.Fprint(os.Stderr, oom.Report())
	case err != nil && errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "stopped")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil {
		os.Exit(1)
	}
}
