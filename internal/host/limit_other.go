//go:build !linux && !darwin && !windows

package host

// Limit fails: how much memory there is, this system was not asked.
func Limit() (int64, error) { return 0, errNoMemory }
