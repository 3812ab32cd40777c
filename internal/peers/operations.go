package main

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

//go:embed operations.py
var operationsScript string

// single prints operations beside PyTorch's and the machine's memory.
func single(out io.Writer, t *table, _ string) error {
	fmt.Fprint(out, `On 64 MiB arrays, results in fresh tensors; GB/s of the elements that an operation reads and writes once (Adam 28 bytes an element, dropout 8, …), medians. Batch norm reads its input twice and is counted once. The machine's are STREAM's loops in the same processes, x and x + 3y, and the last column is the share of the best of them, which updates in place can exceed.

`)
	fmt.Fprintln(out, "| operation | threads | GB/s | PyTorch's | ours over it | of the machine's |\n| --- | --- | --- | --- | --- | --- |")
	var small strings.Builder
	for _, threads := range []int{1, 2} {
		names, ours, theirs := []string(nil), map[string][]float64{}, map[string][]float64{}
		for range t.turns {
			c, err := self("-one", "operations", "-threads", fmt.Sprint(threads))
			if err != nil {
				return err
			}
			text, err := output(c)
			if err != nil {
				return err
			}
			names = read(text, ours)
			if text, err = output(python(operationsScript, fmt.Sprint(threads))); err != nil {
				return err
			}
			read(text, theirs)
		}
		of := func(m map[string][]float64, name string) float64 {
			return median(m[name], func(v float64) float64 { return v })
		}
		var most float64
		for _, s := range streams {
			most = max(most, of(ours, s.name))
		}
		for _, name := range names {
			x := of(ours, name)
			if theirs[name] == nil {
				fmt.Fprintf(out, "| machine: %s | %d | %.1f | | | |\n", name, threads, x)
			} else if y := of(theirs, name); strings.HasPrefix(name, "add, 16 elements") {
				fmt.Fprintf(&small, "| %s | %d | %.2f | %.2f | %.2f |\n", name, threads, x, y, x/y)
			} else {
				fmt.Fprintf(out, "| %s | %d | %.1f | %.1f | %.2f | %.0f %% |\n", name, threads, x, y, x/y, 100*x/most)
			}
		}
	}
	fmt.Fprintf(out, "\nA small one costs this, in a chain of a hundred:\n\n| operation | threads | µs | PyTorch's | ratio |\n| --- | --- | --- | --- | --- |\n%s", small.String())
	return nil
}

// read adds lines of a name, a tab and a number to m, and returns the names.
func read(text string, m map[string][]float64) (names []string) {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, number, _ := strings.Cut(lines.Text(), "\t")
		if v, err := strconv.ParseFloat(number, 64); err == nil {
			names, m[name] = append(names, name), append(m[name], v)
		}
	}
	return names
}

// operations prints this project's figures and the machine's.
func operations(threads int) error {
	d, err := snug.Open("cpu", snug.Config{Threads: threads})
	if err != nil {
		return err
	}
	defer d.Close()
	ctx := context.Background()
	if err := tiny(ctx, d); err != nil {
		return err
	}
	for i, rate := range bandwidths(threads) {
		fmt.Printf("%s\t%.3f\n", streams[i].name, rate)
	}
	if err := d.Train(ctx, large, snug.NoGrad(), snug.Random(snug.NewRand(1))); err != nil {
		return err
	}
	for _, o := range []struct {
		name string
		make func(p []*snug.Param) (optim.Optimizer, error)
		per  float64
	}{
		{"Adam", func(p []*snug.Param) (optim.Optimizer, error) {
			return optim.NewAdam(nn.Params(p), optim.DefaultAdam())
		}, 28},
		{"SGD with momentum", func(p []*snug.Param) (optim.Optimizer, error) {
			return optim.NewSGD(nn.Params(p), optim.SGDConfig{LR: 0.001, Momentum: 0.9})
		}, 20},
	} {
		if err := update(ctx, d, o.name, o.make, o.per); err != nil {
			return err
		}
	}
	return nil
}

// rate prints the median in GB/s.
func rate(name string, bytes float64, run func() (time.Duration, error)) error {
	var times []time.Duration
	for i := range 13 {
		d, err := run()
		if err != nil {
			return err
		}
		if i >= 2 {
			times = append(times, d)
		}
	}
	slices.Sort(times)
	fmt.Printf("%s\t%.3f\n", name, bytes/times[len(times)/2].Seconds()/1e9)
	return nil
}

// large are operations on 64 MiB.
func large(s *snug.Scope) error {
	rng := rand.New(rand.NewPCG(1, 2))
	fill := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	const rows, width = 16384, 1024
	const n = rows * width
	values := fill(n)
	x, y := snug.Upload(s, values, n), snug.Upload(s, values, n)
	matrix, images := x.Reshape(rows, width), x.Reshape(64, 64, 64, 64)
	one := func(v float64, n int) *snug.Tensor { return snug.Full(s, v, snug.Float32, n) }
	weight, bias := one(1, width), one(0, width)
	scale, shift := one(1, 64), one(0, 64)
	for _, o := range []struct {
		name string
		per  float64 // bytes an element of x
		run  func() *snug.Tensor
	}{
		{"add", 12, func() *snug.Tensor { return x.Add(y) }},
		{"ReLU", 8, func() *snug.Tensor { return x.ReLU() }},
		{"GELU", 8, func() *snug.Tensor { return x.GELU() }},
		{"softmax, rows of 1024", 8, func() *snug.Tensor { return matrix.Softmax(1) }},
		{"layer norm, rows of 1024", 8, func() *snug.Tensor { return matrix.LayerNorm(weight, bias, 1e-5) }},
		{"batch norm, 64×64×64×64", 8, func() *snug.Tensor {
			mean, variance := images.MeanVariance()
			return images.BatchNorm(mean, variance, scale, shift, 1e-5, true)
		}},
		{"dropout", 8, func() *snug.Tensor { return x.Dropout(0.1) }},
		{"max pooling 3×3, stride 2", 5, func() *snug.Tensor { return images.MaxPool2D(3, 2, 1, false) }},
		{"cast to bfloat16", 6, func() *snug.Tensor { return x.Cast(snug.BFloat16) }},
	} {
		if err := rate(o.name, o.per*n, func() (time.Duration, error) {
			start := time.Now()
			result := o.run()
			took := time.Since(start)
			result.Free()
			return took, s.Err()
		}); err != nil {
			return err
		}
	}
	return nil
}

// update is an optimizer's step on 25 million elements.
func update(ctx context.Context, d *snug.Device, name string, make func(p []*snug.Param) (optim.Optimizer, error), per float64) error {
	const n = 25_000_000
	model := []*snug.Param{snug.NewParam(snug.Const(0), n)}
	if err := nn.Init(ctx, d, &model, snug.NewRand(1)); err != nil {
		return err
	}
	defer nn.Close(&model)
	o, err := make(model)
	if err != nil {
		return err
	}
	defer o.Close()
	return rate(name, per*n, func() (time.Duration, error) {
		if err := d.Train(ctx, func(s *snug.Scope) error { return model[0].In(s).Sum().Backward() }); err != nil {
			return 0, err
		}
		start := time.Now()
		err := o.Step()
		return time.Since(start), err
	})
}

// tiny prints what an operation costs beside its arithmetic, in microseconds.
func tiny(ctx context.Context, d *snug.Device) error {
	const operations = 100
	for _, how := range []struct {
		name     string
		run      func(ctx context.Context, fn func(*snug.Scope) error, o ...snug.Option) error
		backward bool
	}{
		{"add, 16 elements, not recorded", d.Infer, false},
		{"add, 16 elements, recorded", d.Train, false},
		{"add, 16 elements, with its gradient", d.Train, true},
	} {
		var times []time.Duration
		for range 2000 {
			start := time.Now()
			if err := how.run(ctx, func(s *snug.Scope) error {
				x := snug.Upload(s, make([]float32, 16), 16).Track()
				y := x
				for range operations {
					y = y.Add(x)
				}
				if how.backward {
					return y.Sum().Backward()
				}
				return s.Err()
			}); err != nil {
				return err
			}
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		fmt.Printf("%s\t%.3f\n", how.name, times[len(times)/2].Seconds()*1e6/operations)
	}
	return nil
}
