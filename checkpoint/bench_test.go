package checkpoint_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
)

// What a training step costs plainly, with every block recomputed, and with the products
// in them kept.
func BenchmarkStep(b *testing.B) {
	gpt := func() nn.Layer {
		return models.NewGPT(models.GPTConfig{Vocabulary: 256, Context: 128, Width: 256, Heads: 8, Layers: 6, Dropout: 0.1})
	}
	resnet := func() nn.Layer {
		c := models.DefaultResNet18()
		c.Classes, c.SmallStem = 10, true
		return models.NewResNet(c)
	}
	for _, m := range []struct {
		name  string
		model func() nn.Layer
		data  func(s *snug.Scope, step int) (x, y *snug.Tensor)
	}{
		{"GPT", gpt, func(s *snug.Scope, step int) (x, y *snug.Tensor) {
			return classes(s, 256, step, 8, 128), classes(s, 256, step+1, 8, 128)
		}},
		{"ResNet18", resnet, func(s *snug.Scope, step int) (x, y *snug.Tensor) {
			return snug.Upload(s, waves(16*3*32*32, step), 16, 3, 32, 32), classes(s, 10, step, 16)
		}},
	} {
		for _, c := range []struct {
			name string
			opts []snug.Option
		}{
			{"plain", nil},
			{"every", []snug.Option{checkpoint.Every(1)}},
			{"budget12", []snug.Option{checkpoint.Every(1), checkpoint.Budget(12 << 20)}},
			{"budget24", []snug.Option{checkpoint.Every(1), checkpoint.Budget(24 << 20)}},
			{"products", []snug.Option{checkpoint.Every(1), checkpoint.Products()}},
		} {
			b.Run(m.name+"/"+c.name, func(b *testing.B) {
				r := newTrained(b, testdevice.Name, m.model(), m.data, c.opts...)
				step := func() {
					if err := r.train(0, nil); err != nil {
						b.Fatal(err)
					}
				}
				step() // the first one fills the allocator's cache
				r.dev.Memory().ResetPeak()
				for b.Loop() {
					step()
				}
				s := r.dev.Memory().Stats()
				b.ReportMetric(float64(s.Peak.Allocated), "peak-B")
				b.ReportMetric(float64(s.AtPeak[memory.Activations]), "activations-B")
			})
		}
	}
}
