package offload_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// BenchmarkStep is a training step of a model under each way of offloading; peak-B is the
// device's memory, host-B what is elsewhere.
func BenchmarkStep(b *testing.B) {
	const tokens, width = 128, 256
	resnet := models.DefaultResNet18()
	resnet.Classes, resnet.SmallStem = 10, true
	for _, m := range []struct {
		name    string
		samples int
		make    func() nn.Layer
		batch   func(s *snug.Scope) (x, y *snug.Tensor)
	}{
		{"ResNet18", 16, func() nn.Layer { return models.NewResNet(resnet) }, func(s *snug.Scope) (x, y *snug.Tensor) {
			return snug.Full(s, 0.5, snug.Float32, 16, 3, 32, 32), snug.Zeros(s, snug.Int64, 16)
		}},
		{"GPT", 8, func() nn.Layer {
			return models.NewGPT(models.GPTConfig{Vocabulary: 256, Context: tokens, Width: width, Heads: 8, Layers: 6})
		}, func(s *snug.Scope) (x, y *snug.Tensor) {
			return snug.Zeros(s, snug.Int64, 8, tokens), snug.Zeros(s, snug.Int64, 8, tokens)
		}},
	} {
		activations := func(min, ahead int64, dir string) []snug.Option {
			return []snug.Option{offload.Activations(offload.Config{MinBytes: min, AheadBytes: ahead, Dir: dir})}
		}
		for _, c := range []struct {
			name   string
			o      []snug.Option
			at     offload.Place
			params bool
		}{
			{name: "plain"},
			{name: "activations/waiting", o: activations(1<<18, 0, "")},
			{name: "activations/ahead", o: activations(1<<18, 16<<20, "")},
			{name: "activations/disk", o: activations(1<<18, 16<<20, b.TempDir())},
			{name: "state/host", at: offload.OnHost},
			{name: "state/streamed", at: offload.Streamed},
			{name: "params", params: true},
			{name: "all", o: activations(1<<18, 16<<20, ""), at: offload.OnHost, params: true},
		} {
			b.Run(m.name+"/"+c.name, func(b *testing.B) {
				d, err := snug.Open(testdevice.Name, snug.Config{})
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				net := m.make()
				if c.params {
					offload.Params(nn.Params(net))
				}
				if err := nn.Init(b.Context(), d, net, snug.NewRand(1)); err != nil {
					b.Fatal(err)
				}
				offload.State(d, c.at)
				o, err := optim.NewAdamW(nn.Params(net), optim.DefaultAdamW())
				if err != nil {
					b.Fatal(err)
				}
				w := optim.NewWindow(o, optim.WindowConfig{})
				step := func() {
					if err := d.Train(b.Context(), func(s *snug.Scope) error {
						x, y := m.batch(s)
						return w.Backward(nn.CrossEntropy(net.Forward(x), y), float64(m.samples))
					}, c.o...); err != nil {
						b.Fatal(err)
					}
					if _, err := w.Step(); err != nil {
						b.Fatal(err)
					}
				}
				step() // the first one fills the allocators' caches
				for b.Loop() {
					step()
				}
				host := d.Host().Stats().Peak.Allocated
				if c.name == "activations/disk" {
					host = 0
				}
				b.ReportMetric(float64(m.samples)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
				b.ReportMetric(float64(d.Memory().Stats().Peak.Allocated), "peak-B")
				b.ReportMetric(float64(host), "host-B")
			})
		}
	}
}
