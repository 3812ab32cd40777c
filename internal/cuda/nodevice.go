//go:build !cuda

package cuda

import (
	"fmt"

	"github.com/snug-ml/snug/internal/driver"
)

// Open says why there is no device.
func Open(int) (driver.Device, error) {
	return nil, fmt.Errorf("no CUDA device: %s", looked())
}

func libraries() []string { return nil }

// Cards are none.
func Cards() []string { return nil }
