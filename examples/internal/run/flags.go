package run

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

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
	Compare    bool
	Savers

	// What the example's optimizer and model can do, set before Register.
	MomentTypes []string // beside float32
	LargeHead   bool     // there is a -chunked-head
}

// Register declares the flags with the values in f as defaults.
func (f *Flags) Register(fs *flag.FlagSet) {
	fs.StringVar(&f.Device, "device", cmp.Or(f.Device, "cpu"), "`name` of what to train on: cpu, or cuda:0 in a build with -tags cuda; dry:cpu and dry:cuda:0 predict the memory of one step")
	fs.IntVar(&f.Epochs, "epochs", f.Epochs, "passes over the training set")
	fs.IntVar(&f.Batch, "batch", f.Batch, "samples in one step")
	fs.IntVar(&f.Accumulate, "accumulate", cmp.Or(f.Accumulate, 1), "micro-batches that a step is cut into: less memory, the same step")
	fs.Uint64Var(&f.Seed, "seed", cmp.Or(f.Seed, 1), "of first weights, order and dropout")
	fs.Var(&f.Limit, "limit", "the most `memory` of the device, such as 512MiB; 0: the device's own limit")
	fs.IntVar(&f.Threads, "threads", f.Threads, "that an operation uses; 0: one a processor")
	fs.BoolVar(&f.Compare, "compare", f.Compare, "train some steps plain and with each saver, and show what each needs")
	f.registerSavers(fs)
}

// UsageError is a mistake in the command line.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Parse reads args into fs, in which f is registered. Help goes to out.
func (f *Flags) Parse(fs *flag.FlagSet, args []string, out io.Writer) error {
	fs.Init(fs.Name(), flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error is shown once, by Main
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(out, "usage: %s [flags]\n", fs.Name())
		fs.SetOutput(out)
		fs.PrintDefaults()
		return err
	} else if err != nil {
		return &UsageError{err.Error()}
	}
	if fs.NArg() > 0 {
		return &UsageError{fmt.Sprintf("unexpected argument %q", fs.Arg(0))}
	}
	for _, n := range []struct {
		name       string
		value, min int
	}{{"epochs", f.Epochs, 1}, {"batch", f.Batch, 1}, {"accumulate", f.Accumulate, 1}, {"threads", f.Threads, 0}} {
		if n.value < n.min {
			return &UsageError{fmt.Sprintf("-%s is %d, %d or more wanted", n.name, n.value, n.min)}
		}
	}
	if err := f.checkSavers(); err != nil {
		return err
	}
	if f.Accumulate > f.Batch {
		return &UsageError{fmt.Sprintf("-accumulate %d: a batch of %d samples has not so many parts", f.Accumulate, f.Batch)}
	}
	return nil
}

// Micro is how many samples run through the model at once.
func (f *Flags) Micro() int { return (f.Batch + f.Accumulate - 1) / f.Accumulate }

func (f *Flags) Open() (*snug.Device, error) {
	return snug.Open(f.Device, snug.Config{LimitBytes: int64(f.Limit), Threads: f.Threads})
}

// Dry reports whether the device has no values: a step then tells what memory it needs,
// and nothing else.
func (f *Flags) Dry() bool { return strings.HasPrefix(f.Device, "dry:") }

// Bytes is a flag such as 512MiB, 2GiB or 1000000.
type Bytes int64

func (b *Bytes) String() string {
	if *b == 0 {
		return "0"
	}
	return memory.FormatBytes(int64(*b))
}

func (b *Bytes) Set(text string) error {
	n, unit := text, 1.0
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if t, ok := strings.CutSuffix(text, suffix); ok {
			n, unit = t, float64(int64(1024)<<(10*i))
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
	if err != nil || !(v >= 0 && v*unit < 1<<60) {
		return errors.New("a number of bytes wanted, such as 512MiB")
	}
	*b = Bytes(v * unit)
	return nil
}
