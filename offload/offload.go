package offload

import "github.com/snug-ml/snug"

// Config of what moves.
type Config struct {
	MinBytes int64 `json:"min_bytes"` // smaller storages stay
}

// Default leaves what is below 1 MiB.
func Default() Config { return Config{MinBytes: 1 << 20} }

// Activations moves what Blocks save to the host, until backward reads it.
func Activations(c Config) snug.Option { return snug.OffloadSaved(c.MinBytes) }
