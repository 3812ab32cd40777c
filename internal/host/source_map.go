//go:build !race && (unix || windows)

package host

func (Source) Map(bytes int64) ([]byte, error) { return mapped(bytes) }
