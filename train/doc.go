// Package train has a small loop that nobody has to use. Its heart is one step of an
// optimizer that does not fail because a batch is too large.
//
//	t := &train.Trainer{
//		Device: dev,
//		Window: optim.NewWindow(opt, optim.WindowConfig{ClipNorm: 1}),
//		Loss: func(s *snug.Scope, b data.Batch) (*snug.Tensor, float64) {
//			x, y := b.In(s)
//			return nn.CrossEntropy(model.Forward(x), y), float64(b.Len())
//		},
//		Options: []snug.Option{snug.Random(rng)},
//	}
//	for b, err := range loader.Batches(ctx, 1024) {
//		…
//		r, err := t.Step(ctx, b)
//		…
//	}
//
// # A step
//
// [Trainer.Step] cuts the batch into micro-batches of Micro samples, adds up their
// gradients, weighed by the counts that Loss gives, and has the Window step. Which Micro is
// chosen changes the order of sums and, where a layer looks at a whole micro-batch as batch
// norm does, what that sees; nothing else.
//
// # Out of memory
//
// When memory runs out, in forward, backward or the optimizer, the window goes back to its
// start: gradients, buffers such as batch norm's and nn.Mean's, and the random position.
// Then the same batch is cut into micro-batches of half the size, and so on down to one
// sample. What comes out has the bits of a step that was taken with this size from the
// start. The size that worked is kept in Trainer.Micro for the steps to come; the Result
// has it, and the errors that led to it. Only when one sample does not fit is that the
// step's error, a *memory.OutOfMemoryError with its report, and Micro stays what it was.
//
// A step that fails, for this or another reason, or is cancelled or left by a panic,
// undoes its window as well: it has not taken place. Not so snug.ErrTorn, after which only
// the last saved state helps, and what Loss does to variables of the program. The Window is
// to be empty when Step is called; it is so again afterwards.
//
// # Around it
//
// [Loop] goes over a loader's epochs and tells two functions how it goes; [Evaluate] takes
// a mean over a dataset. Each is usable without the others. [Trainer.Fit] looks for Micro
// by package plan, before the first step.
package train
