// Mlp trains a perceptron with two hidden layers on MNIST: some 98 of 100 digits right,
// in about a minute on two cores.
package main

import (
	"context"
	"flag"
	"io"

	"github.com/snug-ml/snug/examples/internal/classify"
	"github.com/snug-ml/snug/examples/internal/run"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/optim"
)

func main() { run.Main(train) }

func train(ctx context.Context, args []string, out io.Writer) error {
	flags, what := run.Flags{Epochs: 6, Batch: 128, MomentTypes: []string{"bfloat16"}}, classify.Data{}
	fs := flag.NewFlagSet("mlp", flag.ContinueOnError)
	flags.Register(fs)
	what.Register(fs)
	if err := flags.Parse(fs, args, out); err != nil {
		return err
	}
	train, test, err := what.Load()
	if err != nil {
		return err
	}
	pixels := 1
	for _, d := range train.Spec().Shape {
		pixels *= d
	}
	task := classify.Task{
		Flags: flags,
		Model: nn.Sequential{nn.NewFlatten(), models.NewMLP(pixels, 512, 256, train.Spec().Classes)},
		Train: train, Test: test,
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
