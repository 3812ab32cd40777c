package checkpoint

import (
	"slices"

	"github.com/snug-ml/snug"
)

// Policy has recomputed Blocks hold the results that keep chooses, beside their arguments:
// the second run takes those and computes the rest. keep is asked in the first run, for each
// operation that makes a new tensor; op is its name as errors show it, bytes what the tensor
// takes on the device. A result that nothing computed later needs is dropped again, and so
// is one that is written in place afterwards: there use the operation that is not in place.
//
// It says how Blocks are recomputed and not which: Every or Here does. It holds for all
// inside, in Blocks too, until one of those has another.
func Policy(keep func(op string, shape []int, dtype snug.DType, bytes int64) bool) snug.Option {
	return snug.KeepResults(keep)
}

// Keep is the Policy for the operations of these names: Keep("conv2d", "linear").
func Keep(ops ...string) snug.Option {
	return Policy(func(op string, _ []int, _ snug.DType, _ int64) bool { return slices.Contains(ops, op) })
}

// Products is the Policy for what takes most of the time: products of matrices,
// convolutions and attention. Recomputed are sums, activations, normalizations and dropout.
func Products() snug.Option {
	return Keep("matmul", "linear", "conv2d", "conv transpose2d", "attention", "self-attention")
}
