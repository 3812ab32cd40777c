package run

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"time"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
)

// Brief is what some steps of training came to.
type Brief struct {
	peak int64
	time time.Duration // of the steps but the first, which fills the allocator's cache
	bits uint64        // a hash of the model; 0 without values
}

const briefSteps = 4

// Take runs the steps and looks at the model that they leave.
func (b *Brief) Take(d *snug.Device, model any, step func() error) error {
	for i := range briefSteps {
		begin := time.Now()
		if err := step(); err != nil {
			return err
		}
		if i > 0 {
			b.time += time.Since(begin)
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

// Compare trains briefly without any saver, with each and with several, on devices of
// their own, and shows what each way needed.
func Compare(ctx context.Context, out io.Writer, f Flags, brief func(ctx context.Context, d *snug.Device, f Flags, b *Brief) error) error {
	fmt.Fprintf(out, "%-32s %12s %8s %8s  %s\n", "", "peak", "saved", "time", "result")
	var plain Brief
	for _, way := range []struct {
		name string
		set  func(*Flags)
	}{
		{"plain, every result kept", func(f *Flags) { f.keepAll = true }},
		{"recipes (the default)", func(*Flags) {}},
		{"-checkpoint 1", func(f *Flags) { f.Checkpoint = 1 }},
		{"-autocast bfloat16", func(f *Flags) { f.Autocast = "bfloat16" }},
		{"-offload", func(f *Flags) { f.Offload = true }},
		{"-in-backward", func(f *Flags) { f.InBackward = true }},
		{"-accumulate 4", func(f *Flags) { f.Accumulate = min(4, f.Batch) }},
		{"-checkpoint 1 -offload", func(f *Flags) { f.Checkpoint, f.Offload = 1, true }},
		{"-checkpoint 1 -autocast bfloat16", func(f *Flags) { f.Checkpoint, f.Autocast = 1, "bfloat16" }},
	} {
		g := f
		g.Savers, g.Accumulate = Savers{}, 1
		way.set(&g)
		b, err := alone(ctx, g, brief)
		var oom *memory.OutOfMemoryError
		switch {
		case errors.As(err, &oom):
			fmt.Fprintf(out, "%-32s does not fit: %v\n", way.name, oom)
			continue
		case err != nil:
			return err
		}
		if plain.peak == 0 {
			plain = b
		}
		result := "same bits"
		switch {
		case b.bits == 0:
			result = "no values"
		case b.bits != plain.bits:
			result = "rounded otherwise"
		}
		fmt.Fprintf(out, "%-32s %12s %6.0f %% %7.2fx  %s\n", way.name, memory.FormatBytes(b.peak),
			100*(1-float64(b.peak)/float64(plain.peak)), b.time.Seconds()/plain.time.Seconds(), result)
	}
	return nil
}

func alone(ctx context.Context, f Flags, brief func(ctx context.Context, d *snug.Device, f Flags, b *Brief) error) (b Brief, err error) {
	d, err := f.Open()
	if err != nil {
		return b, err
	}
	defer d.Close()
	return b, brief(ctx, d, f, &b)
}
