//go:build cuda

package cuda

// #include "blas.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
)

// blas is cuBLAS, looked for when the first product comes that is worth it.
type blas struct {
	once  sync.Once
	mu    sync.Mutex // a call's workspace belongs to the handle
	tf32  bool
	lib   C.snug_blas
	found string   // the library's name; empty: none
	tried []string // what failed with it
	calls int
}

// blasNames are those of the newest versions first.
var blasNames = []string{
	"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so",
}

// UseTF32 lets products of float32 round their factors to 10 bits, where cuBLAS computes
// them. It is called before the first one.
func (d *Device) UseTF32() { d.blas.tf32 = true }

func (b *blas) open(d *Device) {
	for _, name := range blasNames {
		path := C.CString(name)
		var lib C.snug_blas
		var status C.int
		call := C.snug_blas_open(d.ctx, d.compute, path, &lib, &status)
		C.free(unsafe.Pointer(path))
		if call == nil {
			b.lib, b.found = lib, name
			return
		}
		if call := C.GoString(call); call != "dlopen" {
			b.tried = append(b.tried, fmt.Sprintf("%s: %s answers %d", name, call, status))
		}
	}
}

func (b *blas) close(d *Device) {
	if b.found != "" {
		C.snug_blas_close(d.ctx, &b.lib)
	}
}

var blasTypes = map[driver.DType]C.int{driver.Float32: 0, driver.Float64: 1, driver.Float16: 2, driver.BFloat16: 14}

// What products are computed in: CUBLAS_COMPUTE_32F, …_FAST_TF32, CUBLAS_COMPUTE_64F.
const compute32, computeTF32, compute64 = 68, 77, 70

func (b *blas) String() string {
	switch {
	case b.found != "":
		return libraryText("cuBLAS", b.found, C.GoString(&b.lib.version[0]))
	case b.tried != nil:
		return "no cuBLAS: " + strings.Join(b.tried, "; ")
	}
	return "no cuBLAS: none of " + strings.Join(blasNames, ", ") + " loads"
}

func libraryText(library, name, version string) string {
	if version == "" { // it does not say
		return library + ": " + name
	}
	return library + " " + version
}

// Libraries says who computes large products and convolutions.
func (d *Device) Libraries() []string {
	d.blas.once.Do(func() { d.blas.open(d) })
	d.dnn.once.Do(func() { d.dnn.open(d) })
	return []string{d.blas.String(), d.dnn.String()}
}

// Multiply makes Device a multiplier.
func (d *Device) Multiply(calls []gemm) (bool, error) {
	b := &d.blas
	b.once.Do(func() { b.open(d) })
	if b.found == "" {
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range calls {
		g := &calls[i]
		compute := C.int(compute32)
		switch {
		case g.dtype == driver.Float64:
			compute = compute64
		case g.dtype == driver.Float32 && b.tf32:
			compute = computeTF32
		}
		var err C.CUresult
		status := C.snug_blas_gemm(d.ctx, &b.lib, blasTypes[g.dtype], compute, C.int(g.m), C.int(g.n), C.int(g.k), C.int(g.batch),
			C.uintptr_t(g.x.address), C.int(g.x.ld), flag(g.x.transposed), C.longlong(g.x.stride),
			C.uintptr_t(g.y.address), C.int(g.y.ld), flag(g.y.transposed), C.longlong(g.y.stride),
			C.uintptr_t(g.out.address), C.int(g.out.ld), C.longlong(g.out.stride), flag(g.add), addressOf(g.work), lengthOf(g.work), &err)
		if err != C.CUDA_SUCCESS {
			return false, d.check("cublasGemmStridedBatchedEx", err)
		}
		const archMismatch, notSupported = 8, 15
		if i == 0 && (status == archMismatch || status == notSupported) {
			return false, nil
		}
		if status != 0 {
			if err := d.check("cublasGemmStridedBatchedEx", C.cuStreamQuery(d.compute)); d.Err() != nil {
				return false, err
			}
			return false, fmt.Errorf("%s: cublasGemmStridedBatchedEx of %s answers %d", d.name, b.found, status)
		}
		b.calls++
	}
	return true, nil
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
