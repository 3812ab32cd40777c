// Package plan finds the largest micro-batch whose training step stays within a budget of
// memory.
//
//	p, err := plan.Fit(ctx, dev, 8<<30, plan.Job{
//		Optimizer: opt,
//		Batch:     1024,
//		Loss: func(s *snug.Scope, micro int) *snug.Tensor {
//			x, y := first(batch, micro).In(s)
//			return nn.CrossEntropy(model.Forward(x), y)
//		},
//		Options: []snug.Option{snug.Random(rng)},
//	})
//	// p.Micro samples at a time, p.Peak bytes, with p.Option() beside the job's options
//
// # How it searches
//
// By trying: no formula knows what a model allocates. [Try] runs one training step, and
// Fit bisects over micro-batches with the device's limit lowered to the budget, so that a
// size fits if and only if its step has run. It tries the whole batch first, then about
// log2(Batch) sizes. Sizes are taken to need more the larger they are; where a model
// breaks that, the answer still fits, but a larger one might.
//
// A trial has all that a step of training has: the gradients that the first micro-batch
// leaves are there during the next, the optimizer's state is, and the optimizer steps. Of
// micro-batches of one size, two are run; the rest of the batch, if it does not divide, is
// run too.
//
// # What it leaves behind
//
// Nothing. Parameters, the optimizer's state and number of steps, buffers such as batch
// norm's, and the random position are, in every bit, what they were: after success, an
// error, and a panic in Loss. Values are kept on the host while the optimizer steps.
// Gradients are to be empty before, and are so afterwards; in the middle of a window Try
// and Fit fail with snug.ErrInUse. What Loss does to variables of the program happens in
// every trial. The device's limit is as before and its cache empty; its peaks are those of
// the last trial. Meanwhile nothing else should run on the device: it would be counted,
// and would have to do with the budget.
//
// # Prediction
//
// On a "dry:" device the same call takes the same decisions in no time and without memory:
// a model and an optimizer that are made there as on the real device predict every trial's
// peak to the byte.
//
// # Memory savers
//
// Where not one sample fits, Fit tries again with savers that change no bit, the cheapest
// first: blocks recomputed but for their products, blocks recomputed as a whole, and these
// with what is left of activations on the host. They act on a model's snug.Blocks. What else
// saves memory changes numbers or the program, and is the caller's to choose: the error's
// report names it.
package plan
