package classify

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/examples/internal/run"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/optim"
)

func task() Task {
	return Task{
		Flags: run.Flags{Device: testdevice.Name, Epochs: 3, Batch: 32, Accumulate: 1, Seed: 1},
		Model: nn.Sequential{nn.NewFlatten(), models.NewMLP(28*28, 64, 10)},
		Train: data.Shapes(600, 1), Test: data.Shapes(200, 2),
		SGD: optim.SGDConfig{LR: 0.1, Momentum: 0.9},
	}
}

// start runs a task on a device of its own and checks that nothing stays on it.
func start(t *testing.T, ctx context.Context, out io.Writer, k Task) error {
	t.Helper()
	dev, err := k.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	err = Run(ctx, dev, out, k)
	if live := dev.Memory().Live(); live != "" {
		t.Errorf("after %v there stays\n%s", err, live)
	}
	return err
}

// accuracy is the percentage in the closing table.
func accuracy(t *testing.T, out string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^test accuracy +([0-9.]+) %$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no accuracy in\n%s", out)
	}
	return m[1]
}

func TestLearns(t *testing.T) {
	var b bytes.Buffer
	k := task()
	k.Train = data.Shapes(2000, 1)
	if err := start(t, t.Context(), &b, k); err != nil {
		t.Fatal(err)
	}
	if a := accuracy(t, b.String()); len(a) < 5 || a < "80" {
		t.Errorf("accuracy %s %%, 80 or more wanted", a)
	}
	for _, want := range []string{"epoch 3/3: test accuracy ", "\nepochs                          3\n", "\npeak memory ", "\n  optimizer "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.ContainsAny(b.String(), "\r\x1b") {
		t.Errorf("control characters in plain output %q", b.String())
	}
}

// Micro-batches need less memory and learn the same, but for rounding.
func TestAccumulate(t *testing.T) {
	step := func(accumulate int) (weights []float32, peak int64) {
		k := task()
		k.Accumulate = accumulate
		dev, err := k.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		m := models.NewMLP(28*28, 16, 10)
		k.Model = &seen{nn.Sequential{nn.NewFlatten(), m}, m.Layers[1].Weight, &weights}
		k.Epochs, k.Batch, k.Train, k.Test = 1, 512, data.Shapes(512, 1), data.Shapes(8, 2)
		if err := Run(t.Context(), dev, io.Discard, k); err != nil {
			t.Fatal(err)
		}
		return weights, dev.Memory().Stats().Peak.Allocated
	}
	whole, peak := step(1)
	parts, less := step(5) // the last one smaller
	for i := range whole {
		if d := whole[i] - parts[i]; !(d <= 1e-5 && d >= -1e-5) {
			t.Fatalf("weight %d: %g whole, %g in parts", i, whole[i], parts[i])
		}
	}
	if len(whole) == 0 || less >= peak {
		t.Errorf("%d weights, peak %d whole and %d in parts", len(whole), peak, less)
	}
}

// seen notes a weight's value as the test set's pass finds it.
type seen struct {
	nn.Layer
	weight *snug.Param
	to     *[]float32
}

func (l *seen) Forward(x *snug.Tensor) *snug.Tensor {
	if s := x.Scope(); !s.Training() {
		*l.to, _ = snug.Download[float32](l.weight.In(s))
	}
	return l.Layer.Forward(x)
}

func TestTooSmallALimit(t *testing.T) {
	for _, limit := range []run.Bytes{1, 100 << 10, 600 << 10, 700 << 10} {
		k := task()
		k.Limit = limit
		var b bytes.Buffer
		err := start(t, t.Context(), &b, k)
		var oom *memory.OutOfMemoryError
		if !errors.As(err, &oom) || oom.Report() == "" {
			t.Errorf("limit %v: %v, want out of memory\n%s", &limit, err, b.String())
		}
	}
}

// cancels does so when the text comes by.
type cancels struct {
	io.Writer
	text   string
	cancel func()
}

func (c cancels) Write(b []byte) (int, error) {
	if strings.Contains(string(b), c.text) {
		c.cancel()
	}
	return c.Writer.Write(b)
}

func TestCancelled(t *testing.T) {
	var b bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	err := start(t, ctx, cancels{&b, "epoch 1/3: ", cancel}, task())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
	accuracy(t, b.String())
	if !strings.Contains(b.String(), "\nepochs                          1\n") {
		t.Errorf("the table does not say how far it came:\n%s", b.String())
	}

	b.Reset()
	if err := start(t, ctx, &b, task()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
}

// Within an epoch, between two micro-batches of a step.
func TestCancelledMidway(t *testing.T) {
	var b bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	k, n := task(), 0
	k.Accumulate = 4
	inner := k.Model
	k.Model = nn.Sequential{inner, nn.Func(func(x *snug.Tensor) *snug.Tensor {
		if n++; n == 6 {
			cancel()
		}
		return x
	})}
	if err := start(t, ctx, &b, k); !errors.Is(err, context.Canceled) || n != 6 {
		t.Errorf("%v after %d passes, want cancelled in the 6th", err, n)
	}
	if !strings.Contains(b.String(), "no epoch") || !strings.Contains(b.String(), "peak memory") {
		t.Errorf("the table does not say how far it came:\n%s", b.String())
	}
}

// A dry run predicts the peak of a real one.
func TestDryRun(t *testing.T) {
	k := task()
	k.Train, k.Epochs = data.Shapes(32, 1), 1
	peak := regexp.MustCompile(`(?s)\npeak memory.*`)
	var b bytes.Buffer
	if err := start(t, t.Context(), &b, k); err != nil {
		t.Fatal(err)
	}
	measured := peak.FindString(b.String())
	b.Reset()
	k.Device = testdevice.Dry
	if err := start(t, t.Context(), &b, k); err != nil {
		t.Fatal(err)
	}
	if predicted := peak.FindString(b.String()); predicted == "" || predicted != measured {
		t.Errorf("predicted %s\nmeasured %s", predicted, measured)
	}
}

func TestLoad(t *testing.T) {
	load := func(args ...string) (train, test data.Dataset, err error) {
		var d Data
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		d.Register(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		return d.Load()
	}
	if train, test, err := load("-data", "shapes", "-samples", "3000"); err != nil || train.Len() != 3000 || test.Len() != 2000 {
		t.Errorf("%d and %d samples, %v; want 3000 and 2000", train.Len(), test.Len(), err)
	}
	empty := t.TempDir()
	for _, c := range []struct{ args, text string }{
		{"-data words", "mnist, fashion, cifar10 or shapes wanted"},
		{"-data cifar10", "-dir"},
		{"-data cifar10 -dir " + empty, empty},
		{"-data mnist -dir " + empty, empty},
		{"-data fashion -dir " + empty, empty},
		{"-data shapes -samples -1", "-samples is -1"},
	} {
		if _, _, err := load(strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want an error with %q", c.args, err, c.text)
		}
	}
}

// Comparing takes some steps each way: exact savers leave the plain run's bits.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes in the plain loops that the race detector sees")
	}
	for device, want := range map[string]string{testdevice.Name: "same bits", testdevice.Dry: "no values"} {
		var out strings.Builder
		f := run.Flags{Device: device, Epochs: 1, Batch: 16, Accumulate: 1, Seed: 1, MomentTypes: []string{"bfloat16"}}
		task := Task{
			Flags: f, Train: data.Shapes(64, 1), Test: data.Shapes(16, 2), SGD: optim.SGDConfig{LR: 0.1, Momentum: 0.9},
			Model: models.NewResNet(models.ResNetConfig{Blocks: []int{1, 1}, Width: 4, Channels: 1, Classes: 10, SmallStem: true}),
		}
		if err := Compare(t.Context(), &out, task); err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(strings.ReplaceAll(out.String(), "\n ", " "), "result\n") // a long name has a line of its own
		lines := strings.Split(strings.TrimSpace(table), "\n")
		if len(lines) != 15 {
			t.Fatalf("%d lines:\n%s", len(lines), out.String())
		}
		for _, l := range lines {
			exact := !strings.Contains(l, "autocast") && !strings.Contains(l, "accumulate") && !strings.Contains(l, "moments")
			if got := strings.HasSuffix(l, want); got != (exact || device != testdevice.Name) {
				t.Errorf("%s: %q", device, l)
			}
		}
	}
}
