package run

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
)

// Brief is what some steps of training came to.
type Brief struct {
	peak int64
	time time.Duration // of the fastest step
	bits uint64        // a hash of the model; 0 without values
}

const briefSteps = 5

// Take runs the steps and looks at the model that they leave.
func (b *Brief) Take(d *snug.Device, model any, step func() error) error {
	for i := range briefSteps {
		begin := time.Now()
		if err := step(); err != nil {
			return err
		}
		if t := time.Since(begin); i == 0 || t < b.time {
			b.time = t
		}
	}
	b.peak = d.Memory().Stats().Peak.Allocated
	h := fnv.New64a()
	for _, p := range nn.Params(model) {
		v, err := snug.GetParam[float64](p)
		if errors.Is(err, snug.ErrNoValues) {
			return nil
		} else if err != nil {
			return err
		}
		for _, x := range v {
			fmt.Fprint(h, math.Float64bits(x))
		}
	}
	b.bits = h.Sum64()
	return nil
}

// way is a row of the comparison: flags, and what they set.
type way struct {
	name string
	set  func(*Flags)
}

// ways are those that the example has.
func (f *Flags) ways() []way {
	accumulate := func(f *Flags) { f.Accumulate = min(4, f.Batch) }
	ways := []way{
		{"plain, every result kept", func(f *Flags) { f.keepAll = true }},
		{"recipes (the default)", func(*Flags) {}},
		{"-checkpoint 1", func(f *Flags) { f.Checkpoint = 1 }},
		{"-checkpoint 1 -keep 2MiB", func(f *Flags) { f.Checkpoint, f.Keep = 1, 2<<20 }},
		{"-accumulate 4", accumulate},
		{"-autocast bfloat16", func(f *Flags) { f.Autocast = "bfloat16" }},
		{"-offload", func(f *Flags) { f.Offload = true }},
		{"-offload -offload-to DIR", func(f *Flags) { f.Offload, f.OffloadTo = true, os.TempDir() }},
		{"-offload-params", func(f *Flags) { f.OffloadParams = true }},
		{"-offload-state", func(f *Flags) { f.OffloadState = true }},
		{"-in-backward", func(f *Flags) { f.InBackward = true }},
	}
	for _, t := range f.MomentTypes {
		ways = append(ways, way{"-moments " + t, func(f *Flags) { f.Moments = t }})
	}
	if f.LargeHead {
		ways = append(ways, way{"-chunked-head", func(f *Flags) { f.ChunkedHead = true }})
	}
	ways = append(ways, way{"-checkpoint 1 -offload", func(f *Flags) { f.Checkpoint, f.Offload = 1, true }},
		way{"-checkpoint 1 -autocast bfloat16", func(f *Flags) { f.Checkpoint, f.Autocast = 1, "bfloat16" }})
	name, types := "-checkpoint 1 -autocast bfloat16 -accumulate 4 -offload", f.MomentTypes
	if len(types) > 0 {
		name += " -moments " + types[len(types)-1]
	}
	if f.LargeHead {
		name += " -chunked-head"
	}
	return append(ways, way{name, func(f *Flags) {
		accumulate(f)
		f.Checkpoint, f.Autocast, f.Offload, f.ChunkedHead = 1, "bfloat16", true, f.LargeHead
		if len(types) > 0 {
			f.Moments = types[len(types)-1]
		}
	}})
}

// Compare trains briefly without any saver, with each and with several, on devices of
// their own, and shows what each way needed.
func Compare(ctx context.Context, out io.Writer, f Flags, brief func(ctx context.Context, d *snug.Device, f Flags, b *Brief) error) error {
	fmt.Fprintf(out, `%d steps of %d samples each way. Peak is the device's memory at most, saved how much less that
is than the first row's, time the fastest step's beside that of the first row, run once more
in turn, and result whether every bit of the model is the first row's afterwards.

%-*s %10s %8s %8s  %s
`, briefSteps, f.Batch, wide, "", "peak", "saved", "time", "result")
	f.Savers, f.Accumulate = Savers{}, 1
	var first *Flags
	var plain Brief
	for _, way := range f.ways() {
		g := f
		way.set(&g)
		b, err := alone(ctx, g, brief)
		name := way.name
		if len(name) > wide {
			name += "\n" + strings.Repeat(" ", wide)
		}
		var oom *memory.OutOfMemoryError
		if errors.As(err, &oom) {
			fmt.Fprintf(out, "%-*s does not fit: %v\n", wide, name, oom)
			continue
		} else if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		beside := b
		if first == nil {
			first, plain = &g, b
		} else if beside, err = alone(ctx, *first, brief); err != nil { // other work on the machine slows both
			return err
		}
		result := "same bits"
		switch {
		case b.bits == 0:
			result = "no values"
		case b.bits != plain.bits:
			result = "rounded otherwise"
		}
		fmt.Fprintf(out, "%-*s %10s %6.0f %% %7.2fx  %s\n", wide, name, memory.FormatBytes(b.peak),
			100*(1-float64(b.peak)/float64(plain.peak)), b.time.Seconds()/beside.time.Seconds(), result)
	}
	return nil
}

const wide = 32 // of the names

func alone(ctx context.Context, f Flags, brief func(ctx context.Context, d *snug.Device, f Flags, b *Brief) error) (b Brief, err error) {
	d, err := f.Open()
	if err != nil {
		return b, err
	}
	defer d.Close()
	return b, brief(ctx, d, f, &b)
}
