//go:build cuda

package cuda

// #include "calls.h"
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/snug-ml/snug/internal/driver"
)

// Memory is the card's.
func (d *Device) Memory() driver.Source { return deviceSource{d} }

// Pinned is host memory that copies run to and from by themselves.
func (d *Device) Pinned() driver.Source { return pinnedSource{d} }

type deviceSource struct{ d *Device }

func (s deviceSource) Map(bytes int64) (mem []byte, err error) {
	d := s.d
	err = d.do(func() error {
		p, err := cu.MemAlloc(bytes)
		if err != nil {
			return d.refused("cuMemAlloc", bytes, d.checked("cuMemAlloc", err))
		}
		mem = stretch(p.Uintptr(), bytes)
		d.reserved.Add(bytes)
		return nil
	})
	return mem, err
}

// Unmap waits: what is queued may still use the memory.
func (s deviceSource) Unmap(mem []byte) {
	d := s.d
	if d.Wait() != nil || d.unreserve(mem) {
		return
	}
	_ = d.do(func() error { return d.checked("cuMemFree", cu.MemFree(cu.DevicePtr(address(mem)))) })
	d.reserved.Add(-int64(len(mem)))
}

func (s deviceSource) Fill(mem []byte, value byte) { _ = s.d.set(mem, value) }

// refused says who has the card's memory.
func (d *Device) refused(call string, bytes int64, err error) error {
	free, total, info := cu.MemInfo()
	if info != nil {
		return err
	}
	ours := d.reserved.Load()
	return fmt.Errorf("%w: %d bytes wanted, %d of %d free, %d reserved here and %d taken by contexts and other processes",
		err, bytes, free, total, ours, total-free-ours)
}

type pinnedSource struct{ d *Device }

// Map rounds up to whole pages, which is what the system pins, and to no power of two.
func (s pinnedSource) Map(bytes int64) ([]byte, error) {
	const page = 4096
	var p unsafe.Pointer
	code := C.snug_pin(s.d.ctx, &p, C.size_t((bytes+page-1)/page*page))
	if err := s.d.check("cuMemHostAlloc", code); err != nil {
		return nil, fmt.Errorf("%w: %d bytes wanted", err, bytes)
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

func (s pinnedSource) Unmap(mem []byte) {
	if s.d.Wait() == nil {
		_ = s.d.check("cuMemFreeHost", C.snug_unpin(s.d.ctx, pointerTo(mem)))
	}
}

func (s pinnedSource) Fill(mem []byte, value byte) {
	if s.d.Wait() == nil {
		for i := range mem {
			mem[i] = value
		}
	}
}

// Growable tells whether the driver gives addresses apart from memory, in granules of the
// size that package memory has.
func (d *Device) Growable() bool { return d.granule == poolGranule }

const poolGranule = 2 << 20

func (d *Device) granularity() int64 {
	if has, err := d.device.Attribute(C.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED); err != nil || has == 0 {
		return 0
	}
	var n C.size_t
	if C.snug_granularity(d.ctx, C.int(d.device), &n) != C.CUDA_SUCCESS || n == 0 || poolGranule%n != 0 {
		return 0
	}
	return poolGranule
}

// reservations are ranges of addresses, with the granules of each that have memory.
type reservations struct {
	mu sync.Mutex
	of map[uint64][]bool
}

// Reserve takes addresses that have no memory yet.
func (s deviceSource) Reserve(bytes int64) ([]byte, error) {
	d, p := s.d, C.CUdeviceptr(0)
	if err := d.check("cuMemAddressReserve", C.snug_reserve(d.ctx, &p, C.size_t(bytes), poolGranule)); err != nil {
		return nil, fmt.Errorf("%w: %d addresses wanted", err, bytes)
	}
	r := &d.reservations
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[uint64][]bool{}
	}
	r.of[uint64(p)] = make([]bool, (bytes+poolGranule-1)/poolGranule)
	return stretch(uintptr(p), bytes), nil
}

func (s deviceSource) Commit(part []byte) error {
	d := s.d
	if err := d.check("cuMemCreate", C.snug_commit(d.ctx, C.int(d.device), addressOf(part), lengthOf(part), poolGranule)); err != nil {
		_ = d.do(func() error { err = d.refused("cuMemCreate", int64(len(part)), err); return nil })
		return err
	}
	d.reserved.Add(int64(len(part)))
	d.reservations.mark(part, true)
	return nil
}

// Decommit waits: what is queued may still use the memory.
func (s deviceSource) Decommit(part []byte) {
	d := s.d
	if d.Wait() != nil {
		return
	}
	_ = d.check("cuMemUnmap", C.snug_decommit(d.ctx, addressOf(part), lengthOf(part), poolGranule))
	d.reserved.Add(-int64(len(part)))
	d.reservations.mark(part, false)
}

// mark notes which granules have memory.
func (r *reservations) mark(part []byte, has bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := address(part)
	for base, granules := range r.of {
		if i := (at - base) / poolGranule; at >= base && i < uint64(len(granules)) {
			for k := range uint64(len(part)) / poolGranule {
				granules[i+k] = has
			}
		}
	}
}

// unreserve gives back a range of addresses and what memory it has; false: it is none.
func (d *Device) unreserve(mem []byte) bool {
	r := &d.reservations
	r.mu.Lock()
	defer r.mu.Unlock()
	granules, ok := r.of[address(mem)]
	if !ok {
		return false
	}
	delete(r.of, address(mem))
	for i, has := range granules {
		if has {
			_ = d.check("cuMemUnmap", C.snug_decommit(d.ctx, addressOf(mem)+C.uintptr_t(i*poolGranule), poolGranule, poolGranule))
			d.reserved.Add(-poolGranule)
		}
	}
	_ = d.check("cuMemAddressFree", C.snug_unreserve(d.ctx, addressOf(mem), lengthOf(mem)))
	return true
}
