// Package offload keeps on the host, until backward, what Blocks have saved.
//
//	dev.Train(ctx, step, offload.Activations(offload.Default()))
//
// When an outermost Block inside the scope ends, what was saved in it moves to the host,
// but its results and parameters, and comes back when backward, or another operation, reads
// it. The bits are the same. Memory on the host is dev.Host's, with a limit and statistics
// of its own. It works together with package checkpoint: of recomputed blocks the arguments
// move.
//
// What does not work yet: copies that run beside the computation, both ways, so each move
// takes its whole time; pinned memory; the state of optimizers and the parameters. On the
// CPU, where both memories are one, it saves nothing but a device's limit.
package offload
