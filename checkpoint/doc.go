// Package checkpoint trades time for memory: chosen Blocks of a model keep nothing of their
// inside for backward, but their arguments, and run again when backward reaches them
// (Chen et al., 2016).
//
// Models mark blocks with snug.Block and import no saver; the caller chooses, in options of
// a scope or of one block:
//
//	dev.Train(ctx, step, checkpoint.Every(1))               // every block right inside the scope
//	snug.Block(b.Forward, x, checkpoint.Here())             // this one
//	snug.Block(b.Forward, x, checkpoint.Every(2))           // every second one inside this one
//	checkpoint.NewSequential(layers, 4)                     // a layer: four segments of layers
//
// Gradients, buffers and random numbers have the same bits as without. A choice counts the
// blocks right inside what it is given to and is not inherited by those; recomputed blocks
// nest. A block's function runs twice: it gets its input as argument, other tensors that it
// captures have to be the same the second time, or the scope fails, and what else it does,
// such as printing, happens twice. Buffers and nn.Mean change once. Random numbers, autocast
// and mode are those of the first run. The second run ends with the last operation whose
// result backward reads.
//
// # Policies
//
// With a Policy a recomputed block also holds results of operations that are dear to
// compute, and the second run takes those:
//
//	dev.Train(ctx, step, checkpoint.Every(1), checkpoint.Products())
//
// Held are the result and what the operation itself saved of its own making, such as
// attention's sums; its inputs are made again. They count as activations and are offloaded
// like others.
//
// A GPT of 6 layers, width 256 and dropout, on 8 sequences of 128 tokens (BenchmarkStep; a
// CPU with AVX2):
//
//	                              peak of a step   CPU time
//	plain                         170 MB           1
//	Every(1)                      102 MB           1.2 to 1.3
//	Every(1), Products()          139 MB           1.04 to 1.06
//
// Where a model's cheap results are recipes anyway, as those of batch norm with ReLU in
// nn/models are, keeping products gives back all that Every saved: a ResNet-18 then peaks
// at 232 MB, with Every(1) alone at 208 MB, and plainly at 220 MB. Report shows such things
// before they are believed in.
package checkpoint
