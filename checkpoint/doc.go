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
//	dev.Train(ctx, step, checkpoint.Every(1), checkpoint.Budget(24<<20))  // the dearest, up to so many bytes
//	dev.Train(ctx, step, checkpoint.Every(1), checkpoint.Products())      // by what they are
//
// Held are the result and what the operation itself saved of its own making, such as
// attention's sums; its inputs are made again. They count as activations and are offloaded
// like others.
//
// A GPT of 6 layers and width 256, on 8 sequences of 128 tokens (BenchmarkStep; two threads
// of a CPU with AVX-512; the process's CPU time, its start included, medians of four, which
// moved by 4 %):
//
//	                              activations   peak of a step   CPU time
//	plain                         64 MB         133 MB           1
//	Every(1)                      12 MB         96 MB            1.14
//	Every(1), Budget(12<<20)      26 MB         105 MB           1.11
//	Every(1), Budget(24<<20)      40 MB         115 MB           1.09
//	Every(1), Products()          64 MB         133 MB           1.02
//
// Where a model's cheap results are recipes anyway, as those of layer norm and GELU here and
// of batch norm with ReLU in a ResNet are, keeping all products gives back all that Every
// saved, and more: beside them there are the arguments. A ResNet-18 peaks at 238 MB with
// Products, with Every(1) alone at 207 MB, with 12 MiB kept at 213 MB, and plainly at 221
// MB. Report shows such things before they are believed in.
package checkpoint
