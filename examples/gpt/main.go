// Gpt trains a small transformer to continue a text, character by character, and ends
// with what it would write itself. -text names a file; without one it learns a generated
// story.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/examples/internal/run"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/optim"
)

const window = 64 // characters that the model sees

func main() { run.Main(train) }

func train(ctx context.Context, args []string, out io.Writer) error {
	flags := run.Flags{Epochs: 2, Batch: 8, MomentTypes: []string{"bfloat16", "uint8"}, LargeHead: true}
	fs := flag.NewFlagSet("gpt", flag.ContinueOnError)
	flags.Register(fs)
	path := fs.String("text", "", "`file` to learn from, in UTF-8; a generated story without one")
	if err := flags.Parse(fs, args, out); err != nil {
		return err
	}
	var corpus *data.Corpus
	var err error
	if *path != "" {
		corpus, err = data.Text(*path, window, window)
	} else {
		corpus, err = data.NewCorpus(story(6000, flags.Seed), window, window)
	}
	if err != nil {
		return err
	}
	if flags.Compare {
		return run.Compare(ctx, out, flags, func(ctx context.Context, d *snug.Device, f run.Flags, b *run.Brief) error {
			return learn(ctx, d, out, f, corpus, b)
		})
	}
	dev, err := flags.Open()
	if err != nil {
		return err
	}
	defer dev.Close()
	return learn(ctx, dev, out, flags, corpus, nil)
}

// trainer is a model that learns a text.
type trainer struct {
	run.Flags
	dev    *snug.Device
	model  *models.GPT
	rng    *snug.Rand
	steps  *optim.Window
	loss   *nn.Mean
	status *run.Status
}

// learn trains; where brief is not nil just some steps, to be compared.
func learn(ctx context.Context, dev *snug.Device, out io.Writer, f run.Flags, corpus *data.Corpus, brief *run.Brief) error {
	// The last tenth of the text is held back, to see what was learned and not memorized.
	held := max(1, corpus.Len()/10)
	first, err := data.Part(corpus, 0, corpus.Len()-held)
	if err != nil {
		return err
	}
	last, err := data.Part(corpus, corpus.Len()-held, corpus.Len())
	if err != nil {
		return err
	}
	if first.Len() == 0 {
		return fmt.Errorf("the text is too short: %d characters or more wanted", 2*window+1)
	}
	c := data.DefaultLoaderConfig()
	c.Seed = f.Seed
	train, err := data.NewLoader(first, c)
	if err != nil {
		return err
	}
	c.Shuffle = false
	test, err := data.NewLoader(last, c)
	if err != nil {
		return err
	}

	r := &trainer{Flags: f, dev: dev, rng: snug.NewRand(f.Seed), loss: nn.NewMean()}
	r.model = models.NewGPT(models.GPTConfig{
		Vocabulary: corpus.Spec().Classes, Context: window, Width: 128, Heads: 4, Layers: 4, Dropout: 0.1,
	})
	if err := f.Place(dev, r.model); err != nil {
		return err
	}
	if err := nn.Init(ctx, dev, r.model, r.rng); err != nil {
		return err
	}
	defer nn.Close(r.model)
	if err := nn.Init(ctx, dev, r.loss, nil); err != nil {
		return err
	}
	defer nn.Close(r.loss)

	adam, err := optim.NewAdamW(nn.Params(r.model), optim.AdamWConfig{
		LR: 2e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, StateDType: f.StateDType(),
	})
	if err != nil {
		return err
	}
	defer adam.Close()
	n := int64(f.Epochs) * int64((first.Len()+f.Batch-1)/f.Batch)
	r.steps = f.Window(adam, optim.WindowConfig{
		ClipNorm: 1, // of all gradients together: a rare batch does not throw the weights about
		Schedule: optim.Warmup(n/10, optim.Cosine(n-n/10, 0.1)),
	})
	defer r.steps.Drop()

	r.status = run.NewStatus(out, dev, int64(f.Epochs)*int64(corpus.Len()))
	defer r.status.Clear()
	if brief != nil {
		return brief.Take(dev, r.model, func() error { return r.first(ctx, train) })
	}
	if f.Dry() {
		return r.predict(ctx, out, train)
	}
	table := []run.Row{{Name: "held-back loss", Value: "no epoch"}}
	for epoch := 0; epoch < f.Epochs && err == nil; epoch++ {
		var loss float64
		if loss, err = r.epoch(ctx, fmt.Sprintf("epoch %d/%d", epoch+1, f.Epochs), train, test); err == nil {
			table = []run.Row{
				{Name: "held-back loss", Value: fmt.Sprintf("%.4f", loss)},
				{Name: "perplexity", Value: fmt.Sprintf("%.3f", math.Exp(loss))},
				{Name: "epochs", Value: fmt.Sprint(epoch + 1)},
				{Name: "training, testing", Value: run.Seconds(r.status.Elapsed())},
			}
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	r.status.Clear()
	run.Table(out, dev, table...)
	if err != nil {
		return err
	}
	sample, err := r.write(ctx, corpus, 400)
	fmt.Fprintf(out, "\n%s\n", sample)
	return err
}

// epoch trains on all windows once and returns the loss on those held back.
func (r *trainer) epoch(ctx context.Context, name string, train, test *data.Loader) (float64, error) {
	r.status.Phase(name)
	for batch, err := range train.Batches(ctx, r.Batch) {
		if err == nil {
			err = r.step(ctx, batch)
		}
		if err == nil {
			err = r.status.Add(batch.Len(), func() (string, error) {
				loss, err := r.loss.Take()
				return fmt.Sprintf("loss %.4f", loss), err
			})
		}
		if err != nil {
			return 0, err
		}
	}
	if _, err := r.loss.Take(); err != nil { // what it has is of training
		return 0, err
	}
	for batch, err := range test.Batches(ctx, r.Micro()) {
		if err != nil {
			return 0, err
		}
		// Infer records nothing and drops nothing out.
		err := r.dev.Infer(ctx, func(s *snug.Scope) error {
			x, y := batch.In(s)
			r.loss.Add(nn.CrossEntropy(r.model.Forward(x), y), float64(batch.Len()))
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	loss, err := r.loss.Take()
	if err == nil {
		r.status.Say("%s: held-back loss %.4f after %s", name, loss, run.Seconds(r.status.Elapsed()))
	}
	return loss, err
}

// step adds up the gradients of a batch's micro-batches and changes the parameters.
func (r *trainer) step(ctx context.Context, batch data.Batch) error {
	stepped := false
	for micro, last := range batch.Split(r.Micro()) {
		err := r.dev.Train(ctx, func(s *snug.Scope) error {
			x, y := micro.In(s)
			loss := r.cost(x, y)
			n := float64(micro.Len())
			r.loss.Add(loss, n)
			var err error
			stepped, err = r.Backward(r.steps, loss, n, last)
			return err
		}, r.Options(r.rng)...)
		if err != nil {
			return err
		}
	}
	if stepped { // in backward
		return nil
	}
	_, err := r.steps.Step()
	return err
}

// cost is the loss of a micro-batch; chunked, without all its logits in memory.
func (r *trainer) cost(x, y *snug.Tensor) *snug.Tensor {
	if r.ChunkedHead {
		return r.model.Loss(x, y)
	}
	return nn.CrossEntropy(r.model.Forward(x), y)
}

// predict runs one step on a device without values, and tells what memory it needs.
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
