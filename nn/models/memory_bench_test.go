package models_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// workload is a model and the batch that it trains on.
type workload struct {
	name  string
	batch int
	model func() nn.Layer
	data  func(s *snug.Scope, n int) (x, y *snug.Tensor)
}

var workloads = []workload{
	{"MLP", 128, func() nn.Layer { return models.NewMLP(784, 1024, 1024, 10) }, pictures(10, 784)},
	{"ResNet18", 64, func() nn.Layer {
		c := models.DefaultResNet18()
		c.Classes, c.SmallStem = 10, true
		return models.NewResNet(c)
	}, pictures(10, 3, 32, 32)},
	{"ResNet50", 4, func() nn.Layer { return models.NewResNet(models.DefaultResNet50()) }, pictures(1000, 3, 224, 224)},
	{"MobileNetV2", 8, func() nn.Layer { return models.NewMobileNetV2(models.DefaultMobileNetV2()) }, pictures(1000, 3, 224, 224)},
	{"GPT", 64, func() nn.Layer {
		return models.NewGPT(models.GPTConfig{Vocabulary: 256, Context: 128, Width: 256, Heads: 8, Layers: 6})
	}, func(s *snug.Scope, n int) (x, y *snug.Tensor) { return labels(s, 256, n, 128), labels(s, 256, n, 128) }},
}

func pictures(classes int, shape ...int) func(s *snug.Scope, n int) (x, y *snug.Tensor) {
	return func(s *snug.Scope, n int) (x, y *snug.Tensor) {
		full := append([]int{n}, shape...)
		size := 1
		for _, d := range full {
			size *= d
		}
		return snug.Upload(s, make([]float32, size), full...), labels(s, classes, n)
	}
}

// way is how a step is taken. Plain is without recipes, which are on by default.
type way struct {
	name      string
	options   []snug.Option
	micro     int
	inside    bool // BackwardStep
	optimizer func(iter.Seq2[string, *snug.Param]) (optim.Optimizer, error)
	chunked   bool // a GPT's loss without its logits
	grads     bool // gradients on the host
}

var plainWay = way{name: "plain", options: []snug.Option{snug.NoRecipes()}}

var ways = []way{
	{name: "recipes"},
	{name: "checkpoint", options: []snug.Option{checkpoint.Every(1)}},
	{name: "checkpoint+budget32MiB", options: []snug.Option{checkpoint.Every(1), checkpoint.Budget(32 << 20)}},
	{name: "bfloat16", options: []snug.Option{amp.Autocast(snug.BFloat16)}},
	{name: "accumulate4", micro: 4},
	{name: "offload", options: []snug.Option{offload.Activations(offload.Default())}},
	{name: "gradients on the host", grads: true},
	{name: "backwardstep", inside: true},
	{name: "adam8bit", optimizer: adam8bit},
	{name: "chunkedhead", chunked: true},
	{name: "checkpoint+bfloat16", options: []snug.Option{checkpoint.Every(1), amp.Autocast(snug.BFloat16)}},
	{name: "checkpoint+bfloat16+accumulate4+offload+adam8bit+chunkedhead", micro: 4, optimizer: adam8bit, chunked: true,
		options: []snug.Option{checkpoint.Every(1), amp.Autocast(snug.BFloat16), offload.Activations(offload.Default())}},
}

func adam8bit(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
	c := optim.DefaultAdamW()
	c.StateDType = snug.Uint8
	return optim.NewAdamW(p, c)
}

// trainee is a workload being trained one way.
type trainee struct {
	workload
	way
	dev   *snug.Device
	m     nn.Layer
	w     *optim.Window
	opts  []snug.Option
	state int64 // of the optimizer
	base  int64 // bytes in use between steps, with the optimizer's
}

func newTrainee(b testing.TB, device string, l workload, v way) *trainee {
	b.Helper()
	d, err := snug.Open(device, snug.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close() })
	rng := snug.NewRand(1)
	t := &trainee{workload: l, way: v, dev: d, m: l.model(), opts: append(slices.Clone(v.options), snug.Random(rng))}
	if err := nn.Init(bg, d, t.m, rng); err != nil {
		b.Fatal(err)
	}
	model := d.Memory().Stats().Allocated
	make := v.optimizer
	if make == nil {
		make = func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
			return optim.NewAdamW(p, optim.DefaultAdamW())
		}
	}
	o, err := make(nn.Params(t.m))
	if err != nil {
		b.Fatal(err)
	}
	if v.grads {
		offload.Grads(nn.Params(t.m))
	}
	t.w = optim.NewWindow(o, optim.WindowConfig{})
	t.base = d.Memory().Stats().Allocated
	t.state = t.base - model
	return t
}

func (t *trainee) step(b testing.TB) time.Duration {
	b.Helper()
	start := time.Now()
	micro := max(1, t.micro)
	n := max(1, t.batch/micro)
	for k := range micro {
		err := t.dev.Train(bg, func(s *snug.Scope) error {
			x, y := t.data(s, n)
			var loss *snug.Tensor
			if g, ok := t.m.(*models.GPT); ok && t.chunked {
				loss = g.Loss(x, y)
			} else {
				loss = nn.CrossEntropy(t.m.Forward(x), y)
			}
			if t.inside && k == micro-1 {
				_, err := t.w.BackwardStep(loss, float64(n))
				return err
			}
			return t.w.Backward(loss, float64(n))
		}, t.opts...)
		if err != nil {
			b.Fatal(err)
		}
	}
	if !t.inside {
		if _, err := t.w.Step(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

// BenchmarkMemory has a row for each model and way: peak bytes, of all, above the model,
// and above model and optimizer's state; the peaks of activations and gradients; and, from
// steps that are taken in turns, the time beside the plain step's.
func BenchmarkMemory(b *testing.B) {
	for _, l := range workloads {
		b.Run(l.name, func(b *testing.B) {
			for _, v := range append([]way{plainWay}, ways...) {
				if v.name == "chunkedhead" && l.name != "GPT" {
					continue
				}
				b.Run(v.name, func(b *testing.B) {
					plain, t := newTrainee(b, *device, l, plainWay), newTrainee(b, *device, l, v)
					plain.step(b)
					t.step(b)
					var ratios []float64
					for b.Loop() {
						p := plain.step(b)
						ratios = append(ratios, float64(t.step(b))/float64(p))
					}
					slices.Sort(ratios)
					s := t.dev.Memory().Stats()
					b.ReportMetric(0, "ns/op") // of two steps: of no use
					b.ReportMetric(ratios[len(ratios)/2], "x-time")
					b.ReportMetric(float64(s.Peak.Allocated), "peak-B")
					b.ReportMetric(float64(s.Peak.Allocated-t.base+t.state), "above-model-B")
					b.ReportMetric(float64(s.Peak.Allocated-t.base), "step-B")
					b.ReportMetric(float64(s.Peaks[memory.Activations]), "activations-B")
					b.ReportMetric(float64(s.Peaks[memory.Gradients]), "gradients-B")
				})
			}
		})
	}
}

// recipes are what steps make again in backward, each kind by its largest result and how
// many of that size all of them together are.
var recipes = []struct {
	model, kind string
	shape       []int
	count       float64
	module      func() nn.Layer // nil for an operation
	forward     func(module nn.Layer, x, y *snug.Tensor) *snug.Tensor
}{
	{"ResNet18", "batch norm relu", []int{64, 64, 32, 32}, 4.75, batchNorm(64), func(m nn.Layer, x, _ *snug.Tensor) *snug.Tensor {
		return m.(*nn.BatchNorm).ForwardReLU(x)
	}},
	{"ResNet18", "batch norm add relu", []int{64, 64, 32, 32}, 3.75, batchNorm(64), func(m nn.Layer, x, y *snug.Tensor) *snug.Tensor {
		return m.(*nn.BatchNorm).ForwardAddReLU(x, y)
	}},
	{"ResNet18", "batch norm", []int{64, 128, 16, 16}, 1.75, batchNorm(128), alone},
	{"GPT", "layer norm", []int{64, 128, 256}, 13, func() nn.Layer { return nn.NewLayerNorm(256) }, alone},
	{"GPT", "gelu", []int{64, 128, 1024}, 6, nil, func(_ nn.Layer, x, _ *snug.Tensor) *snug.Tensor { return x.GELU() }},
}

func batchNorm(channels int) func() nn.Layer {
	return func() nn.Layer { return nn.NewBatchNorm(channels) }
}

func alone(m nn.Layer, x, _ *snug.Tensor) *snug.Tensor { return m.Forward(x) }

// BenchmarkRecipes tells what each kind of recipe costs, in percent of the plain step, where
// all of them are made again once, and how many bytes they are.
func BenchmarkRecipes(b *testing.B) {
	for _, r := range recipes {
		b.Run(r.model+"/"+r.kind, func(b *testing.B) {
			l := workloads[slices.IndexFunc(workloads, func(l workload) bool { return l.name == r.model })]
			plain := newTrainee(b, *device, l, plainWay)
			var module nn.Layer
			if r.module != nil {
				module = r.module()
				if err := nn.Init(bg, plain.dev, module, nil); err != nil {
					b.Fatal(err)
				}
			}
			plain.step(b)
			var percent []float64
			bytes := int64(0)
			for b.Loop() {
				step := plain.step(b)
				if err := plain.dev.Infer(bg, func(s *snug.Scope) error {
					x, y := snug.Zeros(s, snug.Float32, r.shape...), snug.Zeros(s, snug.Float32, r.shape...)
					start := time.Now()
					z := r.forward(module, x, y)
					percent = append(percent, 100*r.count*float64(time.Since(start))/float64(step))
					bytes = int64(r.count * float64(4*z.Len()))
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(percent)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(percent[len(percent)/2], "%-of-step")
			b.ReportMetric(float64(bytes), "saved-B")
		})
	}
}
