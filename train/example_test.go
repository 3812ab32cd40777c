package train_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
	"github.com/snug-ml/snug/train"
)

// setup is a device of 4 MiB and a model whose samples need much in training.
func setup(ctx context.Context) (*train.Trainer, nn.Layer, optim.Optimizer, error) {
	dev, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 4 << 20, Threads: 2})
	if err != nil {
		return nil, nil, nil, err
	}
	model := nn.Sequential{nn.NewFlatten(), nn.NewLinear(28*28, 32, true), nn.Func((*snug.Tensor).ReLU), nn.NewLinear(32, 10, true)}
	if err := nn.Init(ctx, dev, model, snug.NewRand(1)); err != nil {
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	opt, err := optim.NewAdamW(nn.Params(model), optim.DefaultAdamW())
	if err != nil {
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	return &train.Trainer{
		Device: dev,
		Window: optim.NewWindow(opt, optim.WindowConfig{ClipNorm: 1}),
		Loss: func(s *snug.Scope, b data.Batch) (*snug.Tensor, float64) {
			x, y := b.In(s)
			return nn.CrossEntropy(model.Forward(x), y), float64(b.Len())
		},
	}, model, opt, nil
}

// A batch of 1,024 pictures does not fit into 4 MiB; the step is taken in parts.
func ExampleTrainer_Step() {
	ctx := context.Background()
	t, _, opt, err := setup(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Device.Close()
	loader, err := data.NewLoader(data.Shapes(1024, 1), data.DefaultLoaderConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	for b, err := range loader.Batches(ctx, 1024) {
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := t.Step(ctx, b)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("samples:", r.Count)
		fmt.Println("after retries:", len(r.Retried) > 0)
		fmt.Println("in parts, and so from now on:", r.Micro < b.Len(), t.Micro == r.Micro)
	}
	fmt.Println("steps:", opt.Steps())
	// Output:
	// samples: 1024
	// after retries: true
	// in parts, and so from now on: true true
	// steps: 1
}

func ExampleLoop() {
	ctx := context.Background()
	t, model, _, err := setup(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Device.Close()
	learn, err := data.NewLoader(data.Shapes(1000, 1), data.DefaultLoaderConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	test, err := data.NewLoader(data.Shapes(200, 2), data.LoaderConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	right := func(s *snug.Scope, b data.Batch) (*snug.Tensor, float64) {
		x, y := b.In(s)
		n := float64(b.Len())
		return nn.Correct(model.Forward(x), y).MulScalar(1 / n), n
	}
	err = train.Loop{
		Trainer: t, Data: learn, Batch: 10, Epochs: 2,
		OnEpoch: func(ctx context.Context, p train.Progress) error {
			accuracy, err := train.Evaluate(ctx, t.Device, test, 100, right)
			fmt.Printf("epoch %d, %d steps: better than chance: %v\n", p.Epoch, p.Steps, accuracy > 0.2)
			return err
		},
	}.Run(ctx)
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// epoch 0, 100 steps: better than chance: true
	// epoch 1, 200 steps: better than chance: true
}

func ExampleTrainer_Fit() {
	ctx := context.Background()
	t, _, opt, err := setup(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Device.Close()
	loader, err := data.NewLoader(data.Shapes(1024, 1), data.DefaultLoaderConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := t.Fit(ctx, 3<<20, opt, loader, 1024)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a part of the batch:", 1 < p.Micro && p.Micro < 1024, "kept:", t.Micro == p.Micro)
	fmt.Println("steps taken:", opt.Steps(), "samples given:", loader.State().Sample)
	// Output:
	// a part of the batch: true kept: true
	// steps taken: 0 samples given: 0
}
