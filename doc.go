// Package snug trains models within the memory there is. A device owns memory; a scope is
// a transaction on it, in which tensors live; parameters and buffers outlive scopes.
//
//	dev, err := snug.Open("cpu", snug.Config{})
//	…
//	err = dev.Train(ctx, func(s *snug.Scope) error {
//		x := snug.Upload(s, data, 64, 784)
//		loss := nn.CrossEntropy(model.Forward(x), snug.Upload(s, labels, 64))
//		return window.Backward(loss, 64)
//	})
//
// Operations return tensors and no errors, so that they chain. The first failure sticks to
// the scope, makes the rest do nothing, and comes out of Train or Infer in a line that
// names layer, shapes and place. Memory, gradients, buffers and the random position are
// then as they were before the scope: out of memory is a value like any other error.
//
// A scope records what backward needs and nothing else. Block and Layer free what their
// function made but its result and what is saved; Backward frees each saved value when its
// reader is done. Options of a scope or a block say what is recomputed, offloaded or cast;
// models know none of that. "dry:cpu" is a device without values: it predicts the memory of
// a run to the byte.
//
// To add an operation, write an Op: two functions, Forward and Backward, that share what
// Forward saves by name. Package optest tests it whole.
package snug
