// Package offload keeps on the host, until backward, what Blocks have saved.
package offload

import "github.com/snug-ml/snug"

// Config: smaller storages than MinBytes stay.
type Config struct{ MinBytes int64 }

func Default() Config { return Config{MinBytes: 1 << 20} }

func Activations(c Config) snug.Option { return snug.OffloadSaved(c.MinBytes) }
