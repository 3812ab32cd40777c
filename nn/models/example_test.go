package models_test

import (
	"context"
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
)

// A model knows no saver: the options of a step choose. On the dry device nothing is computed,
// and the memory is that of the CPU to the byte: here the activations' peak, as a part of what
// it is where every result is kept that backward reads.
func ExampleResNet() {
	ctx := context.Background()
	d, err := snug.Open("dry:cpu", snug.Config{Threads: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	m := models.NewResNet(models.DefaultResNet50())
	if err := nn.Init(ctx, d, m, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	var plain int64
	for _, options := range [][]snug.Option{{snug.NoRecipes()}, nil, {checkpoint.Every(1)}} {
		d.Memory().ResetPeak()
		if err := d.Train(ctx, func(s *snug.Scope) error {
			x, y := snug.Zeros(s, snug.Float32, 4, 3, 224, 224), snug.Zeros(s, snug.Int64, 4)
			return nn.CrossEntropy(m.Forward(x), y).Backward()
		}, options...); err != nil {
			fmt.Println(err)
			return
		}
		for _, p := range nn.Params(m) {
			if err := p.Zero(); err != nil {
				fmt.Println(err)
			}
		}
		peak := d.Memory().Stats().Peaks[memory.Activations]
		plain = max(plain, peak)
		fmt.Printf("%.1f\n", float64(peak)/float64(plain))
	}
	// Output:
	// 1.0
	// 0.5
	// 0.3
}
