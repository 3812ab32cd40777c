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

// Budget is the Policy that holds as many bytes as it is given, of all Blocks inside
// together: those of the results that are the dearest to compute by the byte. 0 holds
// nothing; with enough the second run makes nothing again but recipes, which nobody holds.
//
// What is dear is counted, not timed, so that a dry run and every machine choose the same: a
// product, convolution or attention is as dear as its multiplications, and for what else
// there is each element read or written counts as 16. While a Block runs first it may hold
// all its results; at its end those stay that are dearer than what other Blocks hold, which
// is dropped where room is wanted.
func Budget(bytes int64) snug.Option { return snug.KeepWithin(bytes) }

// Keep is the Policy for the operations of these names: Keep("conv2d", "linear"). Where nothing
// that is recomputed made a result by one of them, Backward fails with the names that were
// there: a misspelt one would keep nothing. A Policy takes names that may be missing.
func Keep(ops ...string) snug.Option { return snug.KeepOps(ops...) }

// Products is the Policy for what takes most of the time: products of matrices,
// convolutions and attention. Recomputed are sums, activations, normalizations and dropout.
func Products() snug.Option {
	products := []string{"matmul", "linear", "conv2d", "conv transpose2d", "attention", "self-attention"}
	return Policy(func(op string, _ []int, _ snug.DType, _ int64) bool { return slices.Contains(products, op) })
}
