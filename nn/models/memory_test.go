package models_test

import (
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
)

// After forward a convolutional model holds the inputs of its batch norms and little else;
// PyTorch holds those of its convolutions, too, which activations are the results of.
func TestConvolutionalModelsHoldHalf(t *testing.T) {
	c := models.DefaultResNet18()
	c.Classes, c.SmallStem = 10, true
	resnet := 2 * 64 * 32 * 32 // elements a sample: a convolution's result and ReLU's
	for i, blocks := range c.Blocks {
		results := 4 * blocks
		if i > 0 {
			results++ // the shortcut's convolution
		}
		resnet += results * (64 << i) * (32 >> i) * (32 >> i)
	}
	mobilenet := 2 * 32 * 112 * 112
	in, size := 32, 112
	for _, s := range []struct{ expand, out, n, stride int }{
		{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
	} {
		for k := range s.n {
			wide := s.expand * in
			if s.expand > 1 {
				mobilenet += 2 * wide * size * size
			}
			if k == 0 {
				size /= s.stride
			}
			mobilenet += 2 * (wide + s.out) * size * size
			in = s.out
		}
	}
	mobilenet += 2 * 1280 * size * size
	for name, m := range map[string]struct {
		layer nn.Layer
		shape []int
		torch int
	}{
		"ResNet-18, 32×32":     {models.NewResNet(c), []int{64, 3, 32, 32}, resnet},
		"MobileNetV2, 224×224": {models.NewMobileNetV2(models.DefaultMobileNetV2()), []int{8, 3, 224, 224}, mobilenet},
	} {
		d, err := snug.Open(testdevice.Dry, snug.Config{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := nn.Init(bg, d, m.layer, nil); err != nil {
			t.Fatal(err)
		}
		var held int64
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := snug.Zeros(s, snug.Float32, m.shape...)
			before := d.Memory().Stats().Categories[memory.Activations]
			m.layer.Forward(x)
			held = d.Memory().Stats().Categories[memory.Activations] - before
			return nil
		}, snug.Random(snug.NewRand(1))); err != nil {
			t.Fatal(err)
		}
		part := float64(held) / float64(4*m.shape[0]*m.torch)
		if t.Logf("%s: %d bytes held, %.3f of PyTorch's", name, held, part); !(part <= 0.55) {
			t.Errorf("%s: %.3f of what PyTorch holds", name, part)
		}
		d.Close()
	}
}

// What savers leave of the plain step's activations at most, and of the gradients; all of
// them together train the GPT in a quarter of what the plain step needs above its parameters.
// BenchmarkMemory has all models and the times.
func TestWhatSaversSave(t *testing.T) {
	activations := map[string]map[string]float64{
		"ResNet18": {"recipes": 0.60, "checkpoint": 0.50, "bfloat16": 0.55, "accumulate4": 0.30},
		"GPT":      {"checkpoint": 0.35, "bfloat16": 0.55, "accumulate4": 0.30},
	}
	for _, l := range workloads {
		if activations[l.name] == nil {
			continue
		}
		measure := func(v way) (s memory.Stats, above int64) {
			r := newTrainee(t, "dry:cpu", l, v)
			r.step(t)
			s = r.dev.Memory().Stats()
			return s, s.Peak.Allocated - r.base + r.state
		}
		var largest int64 // layer's parameters, of float32
		layers := map[string]int64{}
		for name, p := range nn.Params(l.model()) {
			layer := name[:strings.LastIndexByte(name, '.')]
			layers[layer] += int64(4 * p.Len())
			largest = max(largest, layers[layer])
		}
		plain, all := measure(plainWay)
		for _, v := range ways {
			most, bound := activations[l.name][v.name]
			together := l.name == "GPT" && v.chunked && v.micro > 1
			if !bound && !together && !v.inside {
				continue
			}
			s, above := measure(v)
			part := float64(s.Peaks[memory.Activations]) / float64(plain.Peaks[memory.Activations])
			t.Logf("%s, %s: %.3f of the activations, gradients %d of %d, above the model %d of %d", l.name, v.name, part,
				s.Peaks[memory.Gradients], plain.Peaks[memory.Gradients], above, all)
			if bound && !(part <= most) {
				t.Errorf("%s, %s: %.3f of the plain step's activations, at most %v wanted", l.name, v.name, part, most)
			}
			if v.inside && s.Peaks[memory.Gradients] > largest {
				t.Errorf("%s, %s: gradients of %d bytes, the largest layer has %d", l.name, v.name, s.Peaks[memory.Gradients], largest)
			}
			if together && !(float64(above) <= 0.25*float64(all)) {
				t.Errorf("%s, %s: %d bytes above the parameters, of %d", l.name, v.name, above, all)
			}
		}
	}
}
