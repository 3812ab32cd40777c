//go:build cuda

package cuda

// #include "dnn.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
)

// dnn is cuDNN, looked for when the first convolution comes that is worth it.
type dnn struct {
	once  sync.Once
	mu    sync.Mutex // the descriptors are used again
	lib   C.snug_dnn
	found string   // the library's name; empty: none
	tried []string // what failed with it
	calls int
}

// dnnNames are those of the newest versions first.
var dnnNames = []string{"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so", "/usr/local/cuda/lib64/libcudnn.so"}

func (n *dnn) open(d *Device) {
	for _, name := range dnnNames {
		path := C.CString(name)
		var lib C.snug_dnn
		var status C.int
		call := C.snug_dnn_open(d.ctx, d.compute, path, &lib, &status)
		C.free(unsafe.Pointer(path))
		if call == nil {
			n.lib, n.found = lib, name
			return
		}
		if call := C.GoString(call); call != "dlopen" {
			n.tried = append(n.tried, fmt.Sprintf("%s: %s answers %d", name, call, status))
		}
	}
}

func (n *dnn) close(d *Device) {
	if n.found != "" {
		C.snug_dnn_close(d.ctx, &n.lib)
	}
}

func (n *dnn) String() string {
	switch {
	case n.found != "":
		return libraryText("cuDNN", n.found, C.GoString(&n.lib.version[0]))
	case n.tried != nil:
		return "no cuDNN: " + strings.Join(n.tried, "; ")
	}
	return "no cuDNN: none of " + strings.Join(dnnNames, ", ") + " loads"
}

var dnnTypes = map[driver.DType]C.int{driver.Float32: 0, driver.Float64: 1, driver.Float16: 2, driver.BFloat16: 9}

// Convolve makes Device a convolver.
func (d *Device) Convolve(v *dnnCall) (bool, error) {
	n := &d.dnn
	n.once.Do(func() { n.open(d) })
	if n.found == "" {
		return false, nil
	}
	const floats, doubles = 0, 1             // what products are summed in
	const anyMath, tensorMath, fma = 0, 1, 3 // any includes TF32
	c := C.snug_conv{
		_type: dnnTypes[v.dtype], compute: floats, math: tensorMath,
		n: C.int(v.n), c: C.int(v.c), h: C.int(v.h), w: C.int(v.convolution.w), o: C.int(v.o), kh: C.int(v.kh), kw: C.int(v.kw),
		oh: C.int(v.oh), ow: C.int(v.ow), stride: C.int(v.stride), pad: C.int(v.pad), dilation: C.int(v.dilation), groups: C.int(v.groups),
	}
	switch {
	case v.dtype == driver.Float64:
		c.compute, c.math = doubles, anyMath
	case v.dtype == driver.Float32 && d.blas.tf32:
		c.math = anyMath
	case v.dtype == driver.Float32:
		c.math = fma
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var err C.CUresult
	status := C.snug_dnn_run(d.ctx, &n.lib, &c, C.int(v.pass), C.uintptr_t(v.x), C.uintptr_t(v.weights), C.uintptr_t(v.y), flag(v.add),
		addressOf(v.work), lengthOf(v.work), &err)
	if err != C.CUDA_SUCCESS {
		return false, d.check("cuDNN's convolution", err)
	}
	const tooLittleRoom = -1
	if status == tooLittleRoom || notSupported(status) {
		return false, nil
	}
	if status != 0 {
		if err := d.check("cuDNN's convolution", C.cuStreamQuery(d.compute)); d.Err() != nil {
			return false, err
		}
		return false, fmt.Errorf("%s: a convolution by %s answers %d", d.name, n.found, status)
	}
	n.calls++
	return true, nil
}

// notSupported are 8's answers 6 (no such architecture) and 9, and the thousands of 9.
func notSupported(status C.int) bool { return status == 6 || status == 9 || status/1000 == 3 }
