package offload

import "github.com/snug-ml/snug"

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
