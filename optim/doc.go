// Package optim has optimizers, schedules of their rates, clipping, and the accumulation
// of gradients over micro-batches.
//
// An optimizer is made over the parameters that are not frozen then, after nn.Init: its
// state is allocated at once, so that what fits at the first step fits at every other. Step
// runs outside scopes, after one whose Backward has filled the gradients, and frees them.
// Results are those of PyTorch's optimizers of the same names; Adafactor's are the paper's.
//
// A Window puts what has to happen between two steps into the right order: it weighs
// micro-batches by how much is in them, unscales, clips once, sets the rate, steps, and
// knows the way back.
//
//	w := optim.NewWindow(opt, optim.WindowConfig{ClipNorm: 1, Schedule: optim.Cosine(1000, 0)})
//	for each window {
//		for each micro-batch x, y {
//			err := dev.Train(ctx, func(s *snug.Scope) error {
//				return w.Backward(nn.CrossEntropy(model.Forward(x.In(s)), y.In(s)), float64(len(y)))
//			}, snug.Random(rnd))
//		}
//		result, err := w.Step()
//	}
//
// What an error leaves behind is incomplete, and refused by Step, until Drop has undone the
// window or Zero has freed the gradients.
package optim
