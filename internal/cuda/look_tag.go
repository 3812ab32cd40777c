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
		return "this build has the CUDA backend, but found no driver: " + C.GoString(why)
	}
	v := cu.Version()
	return fmt.Sprintf("this build has the CUDA backend, and found a driver for CUDA %d.%d", v/1000, v%1000/10)
}

// libraries are what the first card has for large products and convolutions.
func libraries() []string {
	if n, _ := cu.NumDevices(); n == 0 {
		return nil
	}
	d, err := Open(0)
	if err != nil {
		return []string{"cuBLAS and cuDNN: " + err.Error()}
	}
	defer d.Close()
	return d.(*Device).Libraries()
}

// Cards describes all devices, a line each.
func Cards() (lines []string) {
	n, _ := cu.NumDevices()
	for i := range n {
		d, err := cu.GetDevice(i)
		if err != nil {
			continue
		}
		card, _ := d.Name()
		bytes, _ := d.TotalMem()
		major, _ := d.Attribute(cu.ComputeCapabilityMajor)
		minor, _ := d.Attribute(cu.ComputeCapabilityMinor)
		lines = append(lines, fmt.Sprintf("cuda:%d  %s, %.1f GiB, compute capability %d.%d", i, card, float64(bytes)/(1<<30), major, minor))
	}
	return lines
}
