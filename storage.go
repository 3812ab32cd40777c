package snug

import (
	"runtime"
	"slices"
	"sync/atomic"
	"weak"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/memory"
)

// storage is counted memory: by frames, by the tape's saves, by gradients on their
// way. It is on the device or, offloaded, on the host. Views share it.
type storage struct {
	dev     *Device
	mem     *memory.Block // nil while away and once freed
	away    *memory.Block // on the host, in tier
	tier    *memory.Pool
	spot    *host.Spot // of a file that is not mapped
	home    *storage   // a parameter's value on the host, whose away this one shares
	route   *route     // of such a value
	been    bool       // a guest has been used in this scope
	move    *move      // there are both, and a copy between them may be under way
	bytes   int64
	refs    atomic.Int32
	id      uint64  // in order of making within a scope; 0 outlives scopes
	version int     // raised by every write in place
	writer  *site   // of the last one
	fixed   bool    // a parameter's or buffer's value
	grad    bool    // a parameter's gradient
	freed   *site   // the Backward that took it
	at      *site   // where it was made
	frames  []*held // the shares that frames have, unless fixed

	small struct { // what the first tensor's share is made of
		held   held
		frames [1]*held
	}
}

const rescueBytes = 1 << 20 // garbage below this is not worth a collection

func (st *storage) hold() *storage { st.refs.Add(1); return st }

func (st *storage) release() {
	if st.refs.Add(-1) > 0 {
		return
	}
	if st.move != nil {
		st.move.end(true)
	}
	if st.mem != nil {
		st.dev.mem.Free(st.mem)
	}
	if st.home != nil {
		st.home.release()
	} else {
		st.leaveHost()
	}
	st.mem, st.away = nil, nil
}

// leaveHost frees what st has there.
func (st *storage) leaveHost() {
	if st.away != nil {
		st.tier.Free(st.away)
	}
	if st.spot != nil {
		st.spot.Free()
	}
	st.away, st.spot = nil, nil
}

// held is a frame's share in a storage. It does not keep the tensor alive, so that
// garbage in it can be told.
type held struct {
	t     weak.Pointer[Tensor] // of a large one, but what only an operation sees
	st    *storage
	frame *frame // nil: no frame's any more
	bytes int64  // that the tensor addresses
	at    *site
	keep  bool // Backward leaves it to its frame
}

// large reports whether a rescue may free it.
func (h *held) large() bool { return h.t != weak.Pointer[Tensor]{} }

func (h *held) drop() {
	if h == nil || h.frame == nil {
		return
	}
	h.leave()
	h.st.release()
	h.st.pinned()
}

// leave ends the frame's hold and passes the share on to the caller.
func (h *held) leave() {
	h.frame = nil
	if h.st.fixed { // many scopes read it at once
		return
	}
	if l := h.st.frames; len(l) == 1 {
		h.st.frames = l[:0]
	} else if i := slices.Index(l, h); i >= 0 {
		h.st.frames = slices.Delete(l, i, i+1)
	}
}

// pinned tells the statistics when only views are left that use a part of the memory.
func (st *storage) pinned() {
	if st.fixed || st.mem == nil || len(st.frames) == 0 || int(st.refs.Load()) != len(st.frames) {
		return
	}
	var used int64
	for _, h := range st.frames {
		used += h.bytes
	}
	if used < st.bytes {
		by := st.frames[0].at
		st.mem.SetUsed(used, func() string { return "view made by " + by.String() })
	}
}

func (s *Scope) block(bytes int64, c memory.Category, at *site) (*memory.Block, error) {
	s.asked = bytes
	b, err := s.dev.mem.Alloc(memory.Request{Bytes: bytes, Category: c, Owner: at, Rescue: s.rescuer, Spare: s.toSpare()})
	if err != nil && s.dev.card != nil && s.dev.card.Err() != nil { // a lost device gives no memory, either
		err = s.dev.card.Err()
	}
	return b, err
}

// rescue is the allocator's last resort: what is on the device for copies' sake; then one
// garbage collection, and whatever large only a frame still holds, and no variable
// reaches, is freed.
func (s *Scope) rescue() (bytes int64) {
	if bytes = s.traffic.clear(); bytes > 0 && bytes >= s.asked {
		return bytes
	}
	runtime.GC()
	for f := s.frame; f != nil; f = f.up {
		for _, h := range f.made {
			if h.frame == f && h.large() && h.t.Value() == nil {
				was := h.st.mem != nil
				if h.drop(); was && h.st.mem == nil {
					bytes += h.st.bytes
				}
			}
		}
	}
	return bytes
}

// make allocates a tensor of the innermost frame.
func (s *Scope) make(c memory.Category, dtype DType, shape []int) (*Tensor, error) {
	n := int64(numel(shape)) * int64(dtype.Size())
	b, err := s.block(n, c, s.now)
	if err != nil {
		return nil, err
	}
	s.serial++
	st := s.storages.new()
	st.dev, st.mem, st.bytes, st.id, st.at = s.dev, b, n, s.serial, s.now
	st.frames = st.small.frames[:0]
	t := s.handle(n)
	t.dtype, t.shape, t.strides, t.st = dtype, shape, s.rowMajor(shape), st
	return s.hold(t, &st.small.held), nil
}

// own has the innermost frame hold t.
func (s *Scope) own(t *Tensor) *Tensor { return s.hold(t, s.helds.new()) }

func (s *Scope) hold(t *Tensor, h *held) *Tensor {
	st := t.st.hold()
	t.s, t.seen, t.h = s, st.version, h
	h.st, h.frame, h.bytes, h.at = st, s.frame, int64(numel(t.shape))*int64(t.dtype.Size()), s.now
	if st.bytes >= rescueBytes && !s.frame.inner {
		h.t = weak.Make(t)
	}
	if !st.fixed {
		st.frames = append(st.frames, h)
	}
	s.frame.made = append(s.frame.made, h)
	return t
}

// take makes t's storage the caller's: handed over by the innermost frame, or shared.
func (s *Scope) take(t *Tensor) *Tensor {
	if t.h != nil && t.h.frame == s.frame {
		t.h.leave()
		return t
	}
	t.st.hold()
	return t.alias()
}

// handle is a new one to a storage of so many bytes. A rescue can tell whether anything
// refers to a large one: that is not part of a slab.
func (s *Scope) handle(bytes int64) *Tensor {
	if bytes >= rescueBytes && !s.frame.inner {
		return new(Tensor)
	}
	return s.tensors.new()
}

// shown is t, which an operation has made, where others see it: a large one by a handle of
// its own.
func (s *Scope) shown(t *Tensor) *Tensor {
	if s.frame.inner || t.h == nil || t.h.frame != s.frame || t.st.bytes < rescueBytes {
		return t
	}
	own := new(Tensor)
	*own = *t
	own.h.t = weak.Make(own)
	return own
}

// alias is a handle to the same elements that no frame holds.
func (t *Tensor) alias() *Tensor {
	if t.st == nil {
		return t.s.blank(t.dtype, t.shape)
	}
	a := t.s.handle(t.st.bytes)
	*a = Tensor{s: t.s, dtype: t.dtype, shape: t.shape, strides: t.strides, off: t.off, st: t.st, seen: t.st.version}
	return a
}

// blank is what a failed operation returns.
func (s *Scope) blank(dtype DType, shape []int) *Tensor {
	t := s.tensors.new()
	*t = Tensor{s: s, dtype: dtype, shape: shape, strides: s.rowMajor(shape)}
	return t
}

// dims is a shape, or strides.
func (s *Scope) dims(d ...int) []int { return append(s.ints.room(len(d)), d...) }

func (s *Scope) rowMajor(shape []int) []int {
	return driver.AppendRowMajor(s.ints.room(len(shape)), shape)
}
