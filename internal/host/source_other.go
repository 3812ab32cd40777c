//go:build !unix && !windows

package host

func (Source) Unmap([]byte) {}
