//go:build cuda && snugdebug

package cuda

// #include "calls.h"
import "C"

// Guarded is memory for one block, which the simulated device has. On it kernels that read
// or write beyond a block fail, and those that come after it was freed.
func (s deviceSource) Guarded(bytes int64) []byte {
	var p C.CUdeviceptr
	if bytes == 0 || C.snug_guard(s.d.ctx, &p, C.size_t(bytes)) != C.CUDA_SUCCESS {
		return nil
	}
	return stretch(uintptr(p), bytes)
}

// Unguard comes after what the compute stream was given.
func (s deviceSource) Unguard(mem []byte) {
	_ = s.d.check("simcuda_unguard", C.snug_unguard(s.d.ctx, s.d.compute, addressOf(mem)))
}
