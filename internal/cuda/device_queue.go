//go:build cuda

package cuda

// #include "calls.h"
import "C"

import (
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"gorgonia.org/cu"
)

// ptxFiles are the kernels' modules, which the driver compiles for its card.
//
//go:embed ptx
var ptxFiles embed.FS

// modules are loaded when a kernel of theirs first runs.
type modules struct {
	mu        sync.RWMutex
	loaded    map[string]cu.Module
	functions map[kernelName]*kernel
}

type kernelName struct{ module, function string }

type kernel struct {
	fn     C.CUfunction
	mu     sync.Mutex
	shared int // bytes of dynamic shared memory that it may have
}

const sharedBytes = 48 << 10 // every function may have so many

// Launch makes Device a Queue.
func (d *Device) Launch(l *Launch) error {
	if err := d.Err(); err != nil {
		return err
	}
	f, err := d.function(l)
	if err != nil {
		return err
	}
	return d.check(l.Function, C.snug_launch(d.ctx, d.compute, f.fn,
		C.uint(l.Grid[0]), C.uint(l.Grid[1]), C.uint(l.Grid[2]), C.uint(l.Block[0]), C.uint(l.Block[1]), C.uint(l.Block[2]),
		C.uint(l.Shared), unsafe.Pointer(unsafe.SliceData(l.Params)), unsafe.Pointer(unsafe.SliceData(l.Starts)), C.int(len(l.Starts))))
}

func (d *Device) function(l *Launch) (*kernel, error) {
	m, id := &d.modules, kernelName{l.Module, l.Function}
	m.mu.RLock()
	f := m.functions[id]
	m.mu.RUnlock()
	if f == nil {
		err := d.do(func() (err error) { f, err = m.load(d, id); return err })
		if err != nil {
			return nil, err
		}
	}
	if l.Shared > sharedBytes {
		f.mu.Lock()
		defer f.mu.Unlock()
		if l.Shared > f.shared {
			if err := d.check(l.Function, C.snug_shared(d.ctx, f.fn, C.int(l.Shared))); err != nil {
				return nil, err
			}
			f.shared = l.Shared
		}
	}
	return f, nil
}

func (m *modules) load(d *Device, id kernelName) (*kernel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.functions[id]; f != nil {
		return f, nil
	}
	mod, ok := m.loaded[id.module]
	if !ok {
		image, missing := ptx(id.module)
		var err error
		if mod, err = cu.LoadData(string(image)); err != nil && missing != nil {
			return nil, fmt.Errorf("this build lacks the kernels of %s: %w", id.module, missing)
		} else if err != nil {
			return nil, d.checked("loading the kernels of "+id.module, err)
		}
		if m.loaded == nil {
			m.loaded, m.functions = map[string]cu.Module{}, map[kernelName]*kernel{}
		}
		m.loaded[id.module] = mod
	}
	fn, err := mod.Function(id.function)
	if err != nil {
		return nil, d.checked("kernel "+id.function+" of "+id.module, err)
	}
	f := &kernel{fn: *(*C.CUfunction)(unsafe.Pointer(&fn))}
	m.functions[id] = f
	return f, nil
}

func ptx(module string) ([]byte, error) {
	f, err := ptxFiles.Open("ptx/" + module + ".ptx.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func (m *modules) unload(d *Device) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mod := range m.loaded {
		err = errors.Join(err, d.checked("cuModuleUnload", mod.Unload()))
	}
	m.loaded, m.functions = nil, nil
	return err
}
