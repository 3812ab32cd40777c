package host

import (
	"sync"
	"sync/atomic"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

// native is for kernels that read and write all floats themselves, of any strides: by
// operands, values, load and store. None of them needs a workspace for 16-bit floats.
func native(name string, f32, f64 driver.Kernel) {
	f32.Strided, f32.Mixed, f64.Strided, f64.Mixed = true, true, true, true
	driver.Register(name, driver.Float32, backend, f32)
	driver.Register(name, driver.Float64, backend, f64)
	driver.Register(name, driver.BFloat16, backend, f32)
	driver.Register(name, driver.Float16, backend, f32)
}

// values are a small array's elements as T, row-major: its memory, or a copy.
func values[T number](a *driver.Array) []T {
	o := newOperand[T](a, a.Shape)
	if o.direct != nil {
		return o.direct
	}
	v := make([]T, a.Len())
	o.read(v, 0, len(v))
	return v
}

// writable is where elements lo to hi of an output are computed: where they belong or, for
// another type, in buf. flush brings them from there.
func (o *operand[T]) writable(buf []T, lo, hi int) []T {
	if o.direct != nil {
		return o.direct[lo:hi]
	}
	return buf[:hi-lo]
}

func (o *operand[T]) flush(v []T, lo, hi int) {
	if o.direct == nil {
		o.write(v, lo, hi)
	}
}

// buffers are a thread's, for operands that cannot be used where they are.
type buffers[T float32 | float64] [4][chunk]T

var (
	buffers32 = sync.Pool{New: func() any { return new(buffers[float32]) }}
	buffers64 = sync.Pool{New: func() any { return new(buffers[float64]) }}
)

func takeBuffers[T float32 | float64]() *buffers[T] {
	return (*buffers[T])(nil).pool().Get().(*buffers[T])
}

func (b *buffers[T]) give() { b.pool().Put(b) }

func (b *buffers[T]) pool() *sync.Pool {
	if _, ok := any(b).(*buffers[float32]); ok {
		return &buffers32
	}
	return &buffers64
}

// channels cuts an array [n c rest…]: how many of each, where the rest counts elements.
func channels(shape []int) (n, c, inner int) {
	return shape[0], shape[1], driver.Numel(shape[2:])
}

// slots runs fn(i, slot) for all i below n. Calls at one time have different slots, below
// threads: each may have a part of the workspace for itself.
func slots(threads, n int, fn func(i, slot int)) {
	var next atomic.Int64
	par.For(threads, min(threads, n), func(slot int) {
		for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
			fn(i, slot)
		}
	})
}
