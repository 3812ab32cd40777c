// Package classify is the training that the examples for images share: how a model, a
// dataset and an optimizer come together in Snug.
package classify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/examples/internal/run"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

// Task is a model and what it learns.
type Task struct {
	run.Flags
	Model       nn.Layer
	Train, Test data.Dataset
	SGD         optim.SGDConfig // its rate is the highest one of the schedule

	brief *run.Brief // not nil: some steps, to be compared
}

// trainer is a task under way.
type trainer struct {
	Task
	dev         *snug.Device
	rng         *snug.Rand
	window      *optim.Window
	loss, right *nn.Mean // of what was trained on since the last look
	status      *run.Status
	result
}

// result is what the closing table tells.
type result struct {
	epochs         int
	accuracy, best float64
	train, test    time.Duration
	rate           float64 // of training, samples a second
}

// Run trains t's model on dev and writes to out how it goes. When ctx is cancelled it
// stops between two operations and still shows what was reached.
func Run(ctx context.Context, dev *snug.Device, out io.Writer, t Task) error {
	// A model is made on the host; Init puts its parameters on the device.
	rng := snug.NewRand(t.Seed)
	if err := t.Place(dev, t.Model); err != nil {
		return err
	}
	if err := nn.Init(ctx, dev, t.Model, rng); err != nil {
		return err
	}
	defer nn.Close(t.Model)

	// Means on the device: counting a loss there does not make the program wait for it.
	means := &struct{ Loss, Right *nn.Mean }{nn.NewMean(), nn.NewMean()}
	if err := nn.Init(ctx, dev, means, nil); err != nil {
		return err
	}
	defer nn.Close(means)

	// The optimizer changes the parameters. The window around it adds up micro-batches
	// and follows the schedule.
	t.SGD.StateDType = t.StateDType()
	sgd, err := optim.NewSGD(nn.Params(t.Model), t.SGD)
	if err != nil {
		return err
	}
	defer sgd.Close()
	steps := int64(t.Epochs) * int64((t.Train.Len()+t.Batch-1)/t.Batch)
	window := t.Window(sgd, optim.WindowConfig{
		Schedule: optim.Warmup(steps/5, optim.Cosine(steps-steps/5, 0)),
	})
	defer window.Drop()

	// Images come as bytes, in another order each epoch, and are normalized on the device,
	// by what some of them say of all.
	some, err := data.Part(t.Train, 0, min(2000, t.Train.Len()))
	if err != nil {
		return err
	}
	mean, std, err := data.MeanStd(some)
	if err != nil {
		return err
	}
	c := data.DefaultLoaderConfig()
	c.Seed, c.Mean, c.Std = t.Seed, mean, std
	train, err := data.NewLoader(t.Train, c)
	if err != nil {
		return err
	}
	c.Shuffle = false
	test, err := data.NewLoader(t.Test, c)
	if err != nil {
		return err
	}

	status := run.NewStatus(out, dev, int64(t.Epochs*(t.Train.Len()+t.Test.Len())))
	defer status.Clear()
	r := &trainer{Task: t, dev: dev, rng: rng, window: window, loss: means.Loss, right: means.Right, status: status}
	if t.brief != nil {
		return t.brief.Take(dev, t.Model, func() error { return r.first(ctx, train) })
	}
	if t.Dry() {
		return r.predict(ctx, out, train)
	}
	for r.epochs < t.Epochs && err == nil {
		err = r.epoch(ctx, train, test)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		status.Clear()
		run.Table(out, dev, r.rows()...)
	}
	return err
}

// epoch trains on all of the training set and then measures the accuracy on the test set.
func (r *trainer) epoch(ctx context.Context, train, test *data.Loader) error {
	begin := time.Now()
	name := fmt.Sprintf("epoch %d/%d", r.epochs+1, r.Epochs)
	r.status.Phase(name)
	for batch, err := range train.Batches(ctx, r.Batch) {
		if err == nil {
			err = r.step(ctx, batch)
		}
		if err == nil {
			err = r.status.Add(batch.Len(), r.figures)
		}
		if err != nil {
			return err
		}
	}
	r.train += time.Since(begin)
	r.rate = r.status.Rate()

	begin = time.Now()
	r.status.Phase(name + " test")
	accuracy, err := r.evaluate(ctx, test)
	if err != nil {
		return err
	}
	r.test += time.Since(begin)
	r.epochs, r.accuracy, r.best = r.epochs+1, accuracy, max(r.best, accuracy)
	r.status.Say("%s: test accuracy %s after %s", name, run.Percent(accuracy), run.Seconds(r.status.Elapsed()))
	return nil
}

// step is one step of the optimizer: the gradients of a batch, then the change.
func (r *trainer) step(ctx context.Context, batch data.Batch) error {
	stepped := false
	for micro, last := range batch.Split(r.Micro()) {
		// Train runs the function as a transaction that records operations for backward.
		// What is made in it is freed when it ends. If anything fails, all is as before.
		err := r.dev.Train(ctx, func(s *snug.Scope) error {
			x, y := micro.In(s)
			logits := r.Model.Forward(x)
			loss := nn.CrossEntropy(logits, y)
			n := float64(micro.Len())
			r.loss.Add(loss, n)
			r.right.Add(nn.Correct(logits, y).MulScalar(1/n), n)
			// Backward adds to the parameters' gradients and frees what it has used. The
			// window weighs micro-batches by their size, so that cutting a batch into
			// several changes its memory and not what is learned.
			var err error
			stepped, err = r.Backward(r.window, loss, n, last)
			return err
		}, r.Options(r.rng)...)
		if err != nil {
			return err
		}
	}
	if stepped { // in backward
		return nil
	}
	// Step changes the parameters, outside scopes, and frees the gradients.
	_, err := r.window.Step()
	return err
}

// evaluate is the part of the test set that the model gets right.
func (r *trainer) evaluate(ctx context.Context, test *data.Loader) (float64, error) {
	right, seen := 0.0, 0
	for batch, err := range test.Batches(ctx, r.Micro()) {
		if err != nil {
			return 0, err
		}
		// Infer records nothing, so that activations are freed layer by layer, and batch
		// norm uses its running statistics.
		err := r.dev.Infer(ctx, func(s *snug.Scope) error {
			x, y := batch.In(s)
			n, err := nn.Correct(r.Model.Forward(x), y).Item()
			right += n
			return err
		})
		if err == nil {
			seen += batch.Len()
			err = r.status.Add(batch.Len(), func() (string, error) { return run.Percent(right / float64(seen)), nil })
		}
		if err != nil {
			return 0, err
		}
	}
	return right / float64(seen), nil
}

// figures are those of training, for the status line.
func (r *trainer) figures() (string, error) {
	loss, err := r.loss.Take()
	if err != nil {
		return "", err
	}
	right, err := r.right.Take()
	return fmt.Sprintf("loss %.4f  %.1f %%", loss, 100*right), err
}

// predict runs one step on a device without values: it needs the memory that a real one
// would, and tells it.
func (r *trainer) predict(ctx context.Context, out io.Writer, train *data.Loader) error {
	if err := r.first(ctx, train); err != nil {
		return err
	}
	fmt.Fprintf(out, "A step would need this memory; %s has no values to learn.\n", r.Device)
	run.Table(out, r.dev)
	return nil
}

// first takes one step, with the loader's next batch.
func (r *trainer) first(ctx context.Context, train *data.Loader) error {
	for batch, err := range train.Batches(ctx, r.Batch) {
		if err != nil {
			return err
		}
		return r.step(ctx, batch)
	}
	return nil
}

// Compare shows what t needs with each saver.
func Compare(ctx context.Context, out io.Writer, t Task) error {
	return run.Compare(ctx, out, t.Flags, func(ctx context.Context, d *snug.Device, f run.Flags, b *run.Brief) error {
		t.Flags, t.brief = f, b
		return Run(ctx, d, out, t)
	})
}

func (r *result) rows() []run.Row {
	if r.epochs == 0 {
		return []run.Row{{Name: "test accuracy", Value: "no epoch"}}
	}
	return []run.Row{
		{Name: "test accuracy", Value: run.Percent(r.accuracy)},
		{Name: "best", Value: run.Percent(r.best)},
		{Name: "epochs", Value: fmt.Sprint(r.epochs)},
		{Name: "training", Value: run.Seconds(r.train)},
		{Name: "testing", Value: run.Seconds(r.test)},
		{Name: "samples/s", Value: fmt.Sprintf("%.0f", r.rate)},
	}
}
