//go:build cuda

package cuda

// #include "calls.h"
import "C"

import (
	"errors"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
)

func (d *Device) set(dst []byte, v byte) error {
	if len(dst) == 0 {
		return d.Err()
	}
	return d.check("cuMemsetD8Async", C.snug_set(d.ctx, d.compute, addressOf(dst), C.uchar(v), lengthOf(dst)))
}

func (d *Device) Clear(dst []byte) error { return d.set(dst, 0) }

// Zero makes Device a Queue.
func (d *Device) Zero(mem []byte) error { return d.set(mem, 0) }

// Upload copies from memory that is not pinned: the driver has read it when it returns.
func (d *Device) Upload(dst, src []byte) error {
	if len(src) == 0 {
		return d.Err()
	}
	return d.check("cuMemcpyHtoDAsync", C.snug_upload(d.ctx, d.compute, addressOf(dst), pointerTo(src), lengthOf(src)))
}

func (d *Device) Download(dst, src []byte) error {
	if len(src) == 0 {
		return d.sync(d.compute)
	}
	return d.check("cuMemcpyDtoHAsync", C.snug_download(d.ctx, d.compute, pointerTo(dst), addressOf(src), lengthOf(src)))
}

// Receive runs between both devices' work before and after it. Where one cannot reach the
// other's memory the driver goes through the host.
func (d *Device) Receive(dst []byte, from driver.Device, src []byte) error {
	o := from.(*Device)
	if len(src) == 0 {
		return errors.Join(d.Err(), o.Err())
	}
	mine, err := d.events.take(d)
	if err != nil {
		return err
	}
	defer d.events.give(mine)
	theirs, err := o.events.take(o)
	if err != nil {
		return err
	}
	defer o.events.give(theirs)
	return d.check("cuMemcpyPeerAsync", C.snug_peer(d.ctx, d.compute, mine, addressOf(dst), o.ctx, o.compute, theirs, addressOf(src), lengthOf(src)))
}

func (d *Device) sync(s C.CUstream) error {
	return d.check("cuStreamSynchronize", C.snug_sync(d.ctx, s))
}

// Start has its copy come after what the compute stream was given until now, on the stream
// of its direction.
func (d *Device) Start(dst, src []byte, out bool, via func(dst, src []byte) error) driver.Copy {
	stream, host, device, direction := d.inward, src, dst, C.int(0)
	if out {
		stream, host, device, direction = d.outward, dst, src, 1
	}
	c := &copying{d: d}
	ev, err := d.events.take(d)
	if err == nil {
		err = d.check("cuStreamWaitEvent", C.snug_order(d.ctx, d.compute, ev, stream))
	}
	switch {
	case err != nil:
		c.err = err
	case via != nil:
		d.events.give(ev)
		c.done = make(chan struct{})
		go func() {
			defer close(c.done)
			c.err = d.bounce.copy(d, stream, out, host, device, via)
		}()
	default:
		c.ev = ev
		c.err = d.check("cuMemcpyAsync", C.snug_copy(d.ctx, stream, ev, direction, pointerTo(host), addressOf(device), lengthOf(host)))
	}
	return c
}

// copying ends with an event or, by way of the bounce buffer, on the host.
type copying struct {
	d    *Device
	ev   C.CUevent
	done chan struct{}
	err  error
}

func (c *copying) Join() error {
	if c.done != nil {
		<-c.done
	}
	if c.err != nil || c.ev == nil {
		return c.err
	}
	defer c.d.events.give(c.ev)
	return c.d.check("cuStreamWaitEvent", C.snug_join(c.d.ctx, c.d.compute, c.ev))
}

// bounce is a pinned buffer in two halves, for copies whose host side the driver cannot
// read by itself, or must not: an error of a file would end the process in there.
type bounce struct {
	mu  sync.Mutex
	buf []byte
}

const bounceBytes = 8 << 20

func (b *bounce) copy(d *Device, s C.CUstream, out bool, host, device []byte, via func(dst, src []byte) error) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf == nil {
		if b.buf, err = d.Pinned().Map(bounceBytes); err != nil {
			return err
		}
	}
	type half struct {
		buf, host []byte
		ev        C.CUevent
		busy      bool
	}
	halves := [2]half{{buf: b.buf[:bounceBytes/2]}, {buf: b.buf[bounceBytes/2:]}}
	for i := range halves {
		if halves[i].ev, err = d.events.take(d); err != nil {
			return err
		}
		defer d.events.give(halves[i].ev)
	}
	finish := func(h *half) error { // what was begun with it
		if !h.busy {
			return nil
		}
		h.busy = false
		if err := d.check("cuEventSynchronize", C.snug_event_wait(d.ctx, h.ev)); err != nil || !out {
			return err
		}
		return via(h.host, h.buf[:len(h.host)])
	}
	for i := 0; len(host) > 0 && err == nil; i++ {
		h := &halves[i%2]
		if err = finish(h); err != nil {
			break
		}
		n := min(len(host), len(h.buf))
		h.host = host[:n]
		direction := C.int(1)
		if !out {
			direction = 0
			if err = via(h.buf[:n], h.host); err != nil {
				break
			}
		}
		err = d.check("cuMemcpyAsync", C.snug_copy(d.ctx, s, h.ev, direction, pointerTo(h.buf), addressOf(device), C.size_t(n)))
		h.busy = err == nil
		host, device = host[n:], device[n:]
	}
	for i := range halves {
		err = errors.Join(err, finish(&halves[i]))
	}
	return err
}

func (b *bounce) free(d *Device) {
	if b.buf != nil {
		d.Pinned().Unmap(b.buf)
		b.buf = nil
	}
}

// events are kept for the next use: to wait for one is to wait for where it stood then.
type events struct {
	mu   sync.Mutex
	free []C.CUevent
}

func (e *events) take(d *Device) (ev C.CUevent, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.free); n > 0 {
		ev, e.free = e.free[n-1], e.free[:n-1]
		return ev, nil
	}
	return ev, d.check("cuEventCreate", C.snug_event(d.ctx, &ev))
}

func (e *events) give(ev C.CUevent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.free = append(e.free, ev)
}

func (e *events) destroy() {
	for _, ev := range e.free {
		C.cuEventDestroy(ev)
	}
	e.free = nil
}
