package host

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Limit is how many bytes the CPU device may reserve where nobody said: the physical
// memory less a margin. The system compresses and swaps what other programs leave idle.
func Limit() (int64, error) {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, fmt.Errorf("host: hw.memsize: %w", err)
	}
	return lessMargin(int64(min(n, math.MaxInt64)))
}
