// Resnet trains a residual network, by default a small one that gets 99 of 100 of MNIST's
// digits right after some minutes on two cores.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/examples/internal/classify"
	"github.com/snug-ml/snug/examples/internal/run"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/optim"
)

func main() { run.Main(train) }

func train(ctx context.Context, args []string, out io.Writer) error {
	flags, what := run.Flags{Epochs: 3, Batch: 64, MomentTypes: []string{"bfloat16"}}, classify.Data{}
	fs := flag.NewFlagSet("resnet", flag.ContinueOnError)
	flags.Register(fs)
	what.Register(fs)
	name := fs.String("model", "small", "small, resnet18, resnet34 or resnet50")
	if err := flags.Parse(fs, args, out); err != nil {
		return err
	}
	train, test, err := what.Load()
	if err != nil {
		return err
	}
	model, err := build(*name, train.Spec())
	if err != nil {
		return err
	}
	task := classify.Task{
		Flags: flags, Model: model, Train: train, Test: test,
		SGD: optim.SGDConfig{LR: 0.1, Momentum: 0.9, Nesterov: true, WeightDecay: 5e-4},
	}
	if flags.Compare {
		return classify.Compare(ctx, out, task)
	}
	dev, err := flags.Open()
	if err != nil {
		return err
	}
	defer dev.Close()
	return classify.Run(ctx, dev, out, task)
}

// build makes a model for images such as s describes. They are small, and so the stem
// does not shrink them.
func build(name string, s data.Spec) (*models.ResNet, error) {
	c, ok := map[string]models.ResNetConfig{
		"small":    {Blocks: []int{1, 1, 1}, Width: 16},
		"resnet18": models.DefaultResNet18(),
		"resnet34": models.DefaultResNet34(),
		"resnet50": models.DefaultResNet50(),
	}[name]
	if !ok {
		return nil, &run.UsageError{Text: fmt.Sprintf("-model %s: small, resnet18, resnet34 or resnet50 wanted", name)}
	}
	c.Channels, c.Classes, c.SmallStem = s.Shape[0], s.Classes, true
	return models.NewResNet(c), nil
}
