package models_test

import (
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
