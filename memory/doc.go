// Package memory is a caching allocator over a device's raw memory. It knows nothing of
// tensors. Every decision depends on sizes and on the order of calls, never on an
// address: a dry run over a Source without memory takes the same ones.
package memory
