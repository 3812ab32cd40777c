package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/optim"
)

// work is what both sides do.
type work struct {
	model          string
	threads, batch int
	tech           string // none, or joined with +: ckpt, accum (micro-batches of 16), bf16, nograd
	steps          int
	device         string // cpu, or a card
}

func (w work) is(tech string) bool { return slices.Contains(strings.Split(w.tech, "+"), tech) }

// batch are inputs and labels of Go.
type batch struct {
	pixels         []float32
	tokens, labels []int64
	shape, target  []int // of one sample
}

func pictures(n, classes int, shape ...int) batch {
	size := n
	for _, d := range shape {
		size *= d
	}
	rng := rand.New(rand.NewPCG(1, 2))
	b := batch{shape: shape, pixels: make([]float32, size), labels: below(rng, classes, n)}
	for i := range b.pixels {
		b.pixels[i] = float32(rng.NormFloat64())
	}
	return b
}

func text(n, vocabulary, tokens int) batch {
	rng, shape := rand.New(rand.NewPCG(1, 2)), []int{tokens}
	return batch{shape: shape, target: shape, tokens: below(rng, vocabulary, n*tokens), labels: below(rng, vocabulary, n*tokens)}
}

func below(rng *rand.Rand, limit, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = rng.Int64N(int64(limit))
	}
	return v
}

// part uploads samples lo to hi.
func (b *batch) part(s *snug.Scope, lo, hi, of int) (x, y *snug.Tensor) {
	shape := append([]int{hi - lo}, b.shape...)
	each := len(b.pixels) / of
	if b.tokens != nil {
		each = len(b.tokens) / of
		x = snug.Upload(s, b.tokens[lo*each:hi*each], shape...)
	} else {
		x = snug.Upload(s, b.pixels[lo*each:hi*each], shape...)
	}
	each = len(b.labels) / of
	return x, snug.Upload(s, b.labels[lo*each:hi*each], append([]int{hi - lo}, b.target...)...)
}

func (w work) build() (nn.Layer, batch, error) {
	switch w.model {
	case "mlp":
		return models.NewMLP(784, 1024, 1024, 10), pictures(w.batch, 10, 784), nil
	case "resnet18":
		c := models.DefaultResNet18()
		c.Classes, c.SmallStem = 10, true
		return models.NewResNet(c), pictures(w.batch, 10, 3, 32, 32), nil
	case "resnet50":
		return models.NewResNet(models.DefaultResNet50()), pictures(w.batch, 1000, 3, 224, 224), nil
	case "mobilenet_v2":
		return models.NewMobileNetV2(models.DefaultMobileNetV2()), pictures(w.batch, 1000, 3, 224, 224), nil
	case "gpt":
		return models.NewGPT(models.GPTConfig{Vocabulary: 256, Context: 128, Width: 256, Heads: 8, Layers: 6}), text(w.batch, 256, 128), nil
	case "gpt124m":
		return models.NewGPT(models.GPTConfig{Vocabulary: 50257, Context: 1024, Width: 768, Heads: 12, Layers: 12, Tied: true}), text(w.batch, 50257, 1024), nil
	}
	return nil, batch{}, fmt.Errorf("no model %q", w.model)
}

// run does the work in this process.
func (w work) run() (f figures, err error) {
	ctx := context.Background()
	m, data, err := w.build()
	if err != nil {
		return f, err
	}
	d, err := snug.Open(w.device, snug.Config{Threads: w.threads})
	if err != nil {
		return f, err
	}
	defer d.Close()
	if err := nn.Init(ctx, d, m, snug.NewRand(1)); err != nil {
		return f, err
	}
	model := d.Memory().Stats().Allocated
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak begins here
		return f, err
	}
	base, err := status("VmRSS:")
	if err != nil {
		return f, err
	}
	options := []snug.Option{snug.Random(snug.NewRand(1))} // for dropout
	if w.is("ckpt") {
		options = append(options, checkpoint.Every(1))
	}
	if w.is("bf16") {
		options = append(options, amp.Autocast(snug.BFloat16))
	}
	micro := w.batch
	if w.is("accum") {
		micro = 16
	}
	var window *optim.Window
	train := func() error {
		for i := 0; i < w.batch; i += micro {
			if err := d.Train(ctx, func(s *snug.Scope) error {
				x, y := data.part(s, i, i+micro, w.batch)
				loss := nn.CrossEntropy(m.Forward(x), y)
				if err := window.Backward(loss, float64(micro)); err != nil {
					return err
				}
				_, err := loss.Item()
				return err
			}, options...); err != nil {
				return err
			}
		}
		_, err := window.Step()
		return err
	}
	if !w.is("nograd") {
		sgd, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 0.001, Momentum: 0.9})
		if err != nil {
			return f, err
		}
		window = optim.NewWindow(sgd, optim.WindowConfig{})
	} else {
		train = func() error {
			return d.Infer(ctx, func(s *snug.Scope) error {
				x, y := data.part(s, 0, w.batch, w.batch)
				_, err := nn.CrossEntropy(m.Forward(x), y).Item()
				return err
			}, options...)
		}
	}
	var times []time.Duration
	for i := range 2 + w.steps {
		start := time.Now()
		if err := train(); err != nil {
			return f, err
		}
		if i >= 2 {
			times = append(times, time.Since(start))
		}
	}
	slices.Sort(times)
	if w.device != "cpu" {
		return figures{float64(times[len(times)/2]) / 1e6, float64(d.Memory().Stats().Peak.Allocated-model) / (1 << 20)}, nil
	}
	peak, err := status("VmHWM:")
	return figures{float64(times[len(times)/2]) / 1e6, peak - base}, err
}

// status is a line of /proc/self/status in MiB.
func status(key string) (float64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(b), key)
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); !ok || err != nil {
		return 0, fmt.Errorf("/proc/self/status has no number for %s", key)
	}
	return kib / 1024, nil
}
