//go:build cuda

package cuda

/*
#include "calls.h"

#cgo noescape snug_launch
#cgo nocallback snug_launch
*/
import "C"

import (
	"fmt"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/snug-ml/snug/internal/driver"
)

// lost are the driver's answers after which it gives no other ones.
var lost = map[C.CUresult]bool{
	C.CUDA_ERROR_ECC_UNCORRECTABLE: true, C.CUDA_ERROR_NVLINK_UNCORRECTABLE: true,
	C.CUDA_ERROR_ILLEGAL_ADDRESS: true, C.CUDA_ERROR_LAUNCH_TIMEOUT: true, C.CUDA_ERROR_CONTEXT_IS_DESTROYED: true,
	C.CUDA_ERROR_ASSERT: true, C.CUDA_ERROR_HARDWARE_STACK_ERROR: true, C.CUDA_ERROR_ILLEGAL_INSTRUCTION: true,
	C.CUDA_ERROR_MISALIGNED_ADDRESS: true, C.CUDA_ERROR_INVALID_ADDRESS_SPACE: true, C.CUDA_ERROR_INVALID_PC: true,
	C.CUDA_ERROR_LAUNCH_FAILED: true, C.CUDA_ERROR_UNKNOWN: true,
}

// check turns an answer into an error, and remembers one that the device does not survive.
func (d *Device) check(call string, code C.CUresult) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	if lost[code] {
		err := fmt.Errorf("%s: %w: %s, noticed by %s; the process has to start again", d.name, driver.ErrDeviceLost, answer(code), call)
		d.lost.CompareAndSwap(nil, &err)
		return *d.lost.Load()
	}
	return fmt.Errorf("%s: %s: %s", d.name, call, answer(code))
}

// checked is check of what a function of package cu returned.
func (d *Device) checked(call string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int { // its type is not exported
		return d.check(call, C.CUresult(v.Int()))
	}
	return fmt.Errorf("%s: %s: %w", d.name, call, err)
}

func answer(code C.CUresult) string {
	if code == C.SNUG_CUDA_LACKING {
		v := cu.Version()
		return fmt.Sprintf("driver too old for %s: it is one for CUDA %d.%d", C.GoString(C.snug_cuda_lacking()), v/1000, v%1000/10)
	}
	var name, text *C.char
	if C.cuGetErrorName(code, &name) != C.CUDA_SUCCESS || C.cuGetErrorString(code, &text) != C.CUDA_SUCCESS {
		return fmt.Sprintf("error %d", code)
	}
	return C.GoString(text) + " (" + C.GoString(name) + ")"
}

// addressOf, lengthOf and pointerTo are a slice as C takes it.
func addressOf(mem []byte) C.uintptr_t    { return C.uintptr_t(address(mem)) }
func lengthOf(mem []byte) C.size_t        { return C.size_t(len(mem)) }
func pointerTo(mem []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(mem)) }

// stretch is memory of the device, or addresses for it, as a slice: never to be touched.
func stretch(at uintptr, bytes int64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), bytes)
}
