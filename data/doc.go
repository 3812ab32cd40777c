// Package data gives datasets as batches in host memory.
//
// A [Dataset] knows how to read one sample: [MNIST], [FashionMNIST], [CIFAR10],
// [CIFAR100], a [Folder] of images, [Text], what lies in [Slices], or [Shapes], which
// needs no file. Nothing is fetched but by MNIST with an empty folder, through the go
// command. A file that is damaged, cut short or of another kind is an error that names it.
//
// A [Loader] makes batches of samples: it shuffles, augments, and loads ahead on its
// workers, whose number changes no batch. What is random depends on the seed, the epoch
// and the sample, nothing else.
//
//	for l.State().Epoch < epochs {
//		for b, err := range l.Batches(ctx, 64) {
//			if err != nil {
//				return err
//			}
//			err := d.Train(ctx, func(s *snug.Scope) error {
//				x, y := b.In(s)
//				…
//			})
//			…
//		}
//	}
//
// Batches ends with the epoch, and the next call begins the next one. The position moves
// when a batch is handed over, so saving the loader inside the loop means "go on after
// this batch", also where this was the epoch's last; resumed, the loop above gives exactly
// the batches that are left, in any batch size.
//
// A batch's memory is used again once the next batch is asked for: [Batch.Clone] keeps
// one, [Batch.Split] cuts one into micro-batches without copying. Images travel as bytes
// and become normalized floats on the device.
package data
