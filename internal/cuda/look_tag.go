//go:build cuda

package cuda

// #include "calls.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"
)

func build() string {
	if why := C.snug_cuda_absent(); why != nil {
		return "this build has the CUDA backend, but no driver: " + C.GoString(why)
	}
	v := cu.Version()
	return fmt.Sprintf("this build has the CUDA backend, and found a driver for CUDA %d.%d", v/1000, v%1000/10)
}
