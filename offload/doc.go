// Package offload keeps on the host, or in a file, what a device does not need at the
// moment: what Blocks have saved for backward, the state of optimizers, and the values of
// parameters. The bits of a training run are the same with all of it and with none.
//
//	offload.State(dev, offload.OnHost)      // before the optimizer is made
//	offload.Grads(nn.Params(model))         // at any time between scopes
//	offload.Params(nn.Params(model))        // before nn.Init, or at any time between scopes
//	dev.Train(ctx, step, offload.Activations(offload.Default()))
//
// # Activations
//
// When an outermost Block inside the scope ends, what was saved in it leaves for the host:
// every storage of at least MinBytes but the Block's results, parameters and their casts,
// and new values of buffers. It comes back when backward, or another operation, reads it.
// What is made outside of any Block stays. Of a Block that package checkpoint recomputes,
// the arguments move.
//
// Copies run beside the computation, one after the other. What leaves is on the device
// until the copy is done and its room is wanted; what comes is there before it is used:
// while an entry of backward runs, what the next ones need is fetched. Both together take
// AheadBytes of the device at most, and give way before an allocation fails. With 0, or for
// a storage that is longer, every move is waited for. When memory is taken and given back
// follows from sizes and order alone, never from how fast a copy is: a dry run predicts the
// peaks of the device and of the host to the byte.
//
// With Dir a temporary file takes the host's place. It is mapped into memory, grows as
// needed, is used again, and goes with the device; on Unix it has no name. Room on the disk
// is taken before it is used, so that a full disk is an error, with the file's path: an
// out-of-memory error of dev.Disk(dir), which has statistics and a limit like dev.Host().
// Where the system maps no files into memory, as under js, it is written and read.
//
// # Optimizer state
//
// After State(d, OnHost) optimizers are made with their state in d's host pool, and never
// need the device for it. Step updates there: the CPU's kernels reach that memory; what lies
// on a device apart comes to a buffer on the host for it, which is as long as the longest
// value and gradient and is taken when the optimizer is made. With
// Streamed each parameter's state is copied to a buffer of the device, updated, and copied
// back; the buffer is as long as the longest needs and is taken when the optimizer is made,
// so that Step still allocates nothing. These copies are waited for.
//
// # Gradients
//
// After Grads(params) a gradient leaves for the host as soon as Backward will add no more to
// it, and is there until the step: with state OnHost the step needs the device for neither
// (ZeRO-Offload: Ren et al., 2021). A later micro-batch brings it back, one at a time, to add
// to it, and so does what reads it. BackwardStep, which frees it at once, leaves it where it
// is.
//
// # Parameters
//
// A value that Params has put on the host comes to the device when an operation reads it,
// and is freed there when the innermost Block around has ended: in backward, after the
// operation, or recomputed Block, that reads it. What is read outside of any Block stays
// until the scope ends. Under autocast a cast is made at each use, and again in backward,
// in place of one a scope. Buffers stay on the device. Step updates values on the host like
// states.
//
// AheadBytes of Activations are for parameters, too: in backward, and in forward from the
// second time on, when it is known which one comes after which. While a Block computes, the
// parameters of the next ones come. A MinBytes that nothing reaches has parameters fetched
// ahead and leaves activations where they are; so also for inference with a model that is
// larger than the device:
//
//	dev.Infer(ctx, answer, offload.Activations(offload.Config{MinBytes: math.MaxInt64, AheadBytes: 64 << 20}))
//
// # Costs
//
// Each byte that leaves is copied twice, once there and once back; a parameter once for
// every Block that reads it and once in backward. Beside the computation that takes memory
// bandwidth of the CPU.
//
// On a CUDA device the host's memory is pinned, and copies run beside kernels, each storage in
// one piece from and to where it waits. That memory is the device's Host pool, of segments
// that are pinned once and used again: the first step takes what the others need, as much as
// a step has away at its peak, and the pool's limit bounds it. What goes to a file passes
// through two pinned buffers of 4 MiB in turns. On the CPU both memories are one, so
// offloading saves a device's limit and no more; but a file's pages the system can write out.
//
// State or parameters in a file are not there.
package offload
