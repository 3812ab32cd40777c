package offload

import (
	"iter"

	"github.com/snug-ml/snug"
)

// Config of what moves.
type Config struct {
	MinBytes   int64 `json:"min_bytes"`   // smaller storages stay
	AheadBytes int64 `json:"ahead_bytes"` // of the device, for what is on its way; 0: every move is waited for
	// Dir is where a temporary file takes what moves, instead of the host's memory; empty:
	// none does.
	Dir string `json:"dir,omitempty"`
}

// Default leaves what is below 1 MiB, and has 64 MiB under way.
func Default() Config { return Config{MinBytes: 1 << 20, AheadBytes: 64 << 20} }

// Activations moves what Blocks save to the host, until backward reads it.
func Activations(c Config) snug.Option { return snug.OffloadSaved(c.MinBytes, c.AheadBytes, c.Dir) }

// Place is where optimizers keep their state.
type Place = snug.StatePlace

const (
	OnDevice = snug.StateOnDevice
	OnHost   = snug.StateOnHost   // the update runs there, too
	Streamed = snug.StateStreamed // on the host; the update runs on the device, a parameter at a time
)

// State has the optimizers that are made on d from now on keep their state there. Streamed
// takes a buffer of the device, as long as the longest state of one parameter, as long as
// such an optimizer is open.
func State(d *snug.Device, at Place) { d.PlaceState(at) }

// Grads has the gradients of parameters wait on the host, each from when Backward will add
// no more to it until the optimizer's step. A later micro-batch brings it back to add to it.
// Where the optimizer's state is OnHost, too, the step never needs the device for either, as
// in ZeRO-Offload (Ren et al., 2021).
func Grads(ps iter.Seq2[string, *snug.Param]) { snug.GradsToHost(ps) }

// Params moves the values of parameters to the host, all or none; called before nn.Init,
// it has them made there. They are on the device while a Block that reads them runs, in
// forward and in backward. Buffers stay.
func Params(ps iter.Seq2[string, *snug.Param]) error { return snug.ToHost(ps) }
