// Package checkpoint trades time for memory: chosen Blocks of a model keep nothing of their
// inside for backward, but their arguments, and run again when backward reaches them.
//
// Models mark blocks with snug.Block and import no saver; the caller chooses, in options of
// a scope or of one block:
//
//	dev.Train(ctx, step, checkpoint.Every(1))               // every block right inside the scope
//	snug.Block(b.Forward, x, checkpoint.Here())             // this one
//	snug.Block(b.Forward, x, checkpoint.Every(2))           // every second one inside this one
//
// Gradients, buffers and random numbers have the same bits as without. A choice counts the
// blocks right inside what it is given to and is not inherited by those; recomputed blocks
// nest. A block's function runs twice: it gets its input as argument, other tensors that it
// captures have to be the same the second time, or the scope fails, and what else it does,
// such as printing, happens twice. Buffers and nn.Mean change once.
//
// What does not work yet: a choice by operation or by module name, and one by a budget of
// bytes.
package checkpoint
