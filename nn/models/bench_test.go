package models_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/optim"
)

var device = flag.String("device", "cpu", "`name` of what benchmarks train on")

func BenchmarkMLP(b *testing.B) {
	benchmarkStep(b, models.NewMLP(784, 1024, 1024, 10), 128, func(s *snug.Scope, n int) (x, y *snug.Tensor) {
		return snug.Upload(s, make([]float32, n*784), n, 784), labels(s, 10, n)
	})
}

func BenchmarkResNet18(b *testing.B) {
	c, n := models.DefaultResNet18(), 32
	c.Classes, c.SmallStem = 10, true
	if testing.Short() {
		n = 4
	}
	benchmarkStep(b, models.NewResNet(c), n, func(s *snug.Scope, n int) (x, y *snug.Tensor) {
		return snug.Upload(s, make([]float32, n*3*32*32), n, 3, 32, 32), labels(s, 10, n)
	})
}

func BenchmarkResNet50(b *testing.B) {
	benchmarkStep(b, models.NewResNet(models.DefaultResNet50()), 4, photographs)
}

func BenchmarkMobileNetV2(b *testing.B) {
	benchmarkStep(b, models.NewMobileNetV2(models.DefaultMobileNetV2()), 8, photographs)
}

func photographs(s *snug.Scope, n int) (x, y *snug.Tensor) {
	return snug.Upload(s, make([]float32, n*3*224*224), n, 3, 224, 224), labels(s, 1000, n)
}

func BenchmarkGPT(b *testing.B) {
	const tokens = 128
	m := models.NewGPT(models.GPTConfig{Vocabulary: 256, Context: tokens, Width: 256, Heads: 8, Layers: 6})
	benchmarkStep(b, m, 8, func(s *snug.Scope, n int) (x, y *snug.Tensor) {
		return labels(s, 256, n, tokens), labels(s, 256, n, tokens)
	})
}

// labels are 0, 1, … and again from classes on.
func labels(s *snug.Scope, classes int, shape ...int) *snug.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i % classes)
	}
	return snug.Upload(s, v, shape...)
}

// benchmarkStep times training steps of n samples with SGD and momentum, and reports what
// the device's memory was at its peak, and how many objects of Go a step makes.
func benchmarkStep(b *testing.B, m nn.Layer, n int, batch func(s *snug.Scope, n int) (x, y *snug.Tensor)) {
	d, err := snug.Open(*device, snug.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	if err := nn.Init(bg, d, m, snug.NewRand(1)); err != nil {
		b.Fatal(err)
	}
	sgd, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1e-3, Momentum: 0.9})
	if err != nil {
		b.Fatal(err)
	}
	w := optim.NewWindow(sgd, optim.WindowConfig{})
	random := snug.Random(snug.NewRand(1))      // for dropout
	wait := !strings.HasPrefix(*device, "dry:") // which has no loss to wait for
	step := func() {
		err := d.Train(bg, func(s *snug.Scope) error {
			x, y := batch(s, n)
			loss := nn.CrossEntropy(m.Forward(x), y)
			if err := w.Backward(loss, float64(n)); err != nil || !wait {
				return err
			}
			_, err := loss.Item()
			return err
		}, random)
		if err == nil {
			_, err = w.Step()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	step() // the first one fills the allocator's cache
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(float64(d.Memory().Stats().Peak.Allocated), "peak-B")
}
