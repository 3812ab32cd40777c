//go:build cuda

package cuda

// #include "calls.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/snug-ml/snug/internal/driver"
)

// Device is a card: its primary context, one stream for kernels, and one for copies in each
// direction.
type Device struct {
	name, card               string
	device                   cu.Device
	context                  cu.CUContext
	ctx                      C.CUcontext
	streams                  [3]cu.Stream
	compute, inward, outward C.CUstream
	bytes, granule           int64
	reserved                 atomic.Int64 // by this process, on this device
	lost                     atomic.Pointer[error]
	modules                  modules
	events                   events
	bounce                   bounce
	reservations             reservations
	blas                     blas
	dnn                      dnn
}

// Open takes the card of a number.
func Open(ordinal int) (driver.Device, error) {
	n, err := cu.NumDevices()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cuDeviceGetCount: %w; %s", err, looked())
	case n == 0:
		return nil, fmt.Errorf("no CUDA device: %s", looked())
	case ordinal >= n:
		return nil, fmt.Errorf("no CUDA device %d: there are %d", ordinal, n)
	}
	d := &Device{name: fmt.Sprintf("cuda:%d", ordinal)}
	if d.device, err = cu.GetDevice(ordinal); err != nil {
		return nil, d.checked("cuDeviceGet", err)
	}
	if d.card, err = d.device.Name(); err != nil {
		return nil, d.checked("cuDeviceGetName", err)
	}
	if major, _ := d.device.Attribute(cu.ComputeCapabilityMajor); major < 6 {
		return nil, fmt.Errorf("%s, %s: compute capability %d; 6.0 or more wanted", d.name, d.card, major)
	}
	if d.context, err = d.device.RetainPrimaryCtx(); err != nil {
		return nil, d.checked("cuDevicePrimaryCtxRetain", err)
	}
	d.ctx = *(*C.CUcontext)(unsafe.Pointer(&d.context))
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Device) prepare() error {
	return d.do(func() error {
		for i := range d.streams {
			var err error
			if d.streams[i], err = cu.MakeStream(cu.NonBlocking); err != nil {
				return d.checked("cuStreamCreate", err)
			}
		}
		stream := func(i int) C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&d.streams[i])) }
		d.compute, d.inward, d.outward = stream(0), stream(1), stream(2)
		free, _, err := cu.MemInfo()
		d.bytes = free
		d.granule = d.granularity()
		return d.checked("cuMemGetInfo", err)
	})
}

// do calls functions of package cu, which want the context current on their thread.
func (d *Device) do(fn func() error) error {
	defer d.Enter()()
	return fn()
}

// Enter binds the goroutine to its thread and makes the context current there; leave undoes
// both.
func (d *Device) Enter() (leave func()) {
	runtime.LockOSThread()
	if err := cu.PushCurrentCtx(d.context); err != nil {
		_ = d.checked("cuCtxPushCurrent", err)
		return runtime.UnlockOSThread
	}
	return func() {
		_, _ = cu.PopCurrentCtx()
		runtime.UnlockOSThread()
	}
}

func (d *Device) Name() string { return d.card }

// Bytes were free when the device was opened: other processes' share is not in it.
func (d *Device) Bytes() int64 { return d.bytes }

func (d *Device) Queue() any { return Queue(d) }

func (d *Device) Err() error {
	if err := d.lost.Load(); err != nil {
		return *err
	}
	return nil
}

// Wait also finds out about work that has failed.
func (d *Device) Wait() error {
	for _, s := range []C.CUstream{d.compute, d.inward, d.outward} {
		if err := d.sync(s); err != nil {
			return err
		}
	}
	return nil
}

// Close gives everything back. What a lost device has goes with its context.
func (d *Device) Close() error {
	err := d.Wait()
	if err == nil {
		d.blas.close(d)
		d.dnn.close(d)
		err = d.do(func() error {
			var err error
			for i := range d.streams {
				err = errors.Join(err, d.checked("cuStreamDestroy", d.streams[i].Destroy()))
			}
			d.events.destroy()
			d.bounce.free(d)
			return errors.Join(err, d.modules.unload(d))
		})
	}
	if e := d.checked("cuDevicePrimaryCtxRelease", d.device.ReleasePrimaryCtx()); err == nil {
		err = e
	}
	return err
}
