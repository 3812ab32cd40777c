//go:build !race && (unix || windows)

package host

// Growable says that segments grow, so that what is free is in few pieces.
const Growable = true

func (Source) Map(bytes int64) ([]byte, error) { return mapped(bytes) }
