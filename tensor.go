package snug

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"weak"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/memory"
)

// Tensor is a handle: a type, a shape, and where its elements lie in a storage. Views of
// one storage differ in shape, strides and offset. After a failure it has type and shape
// alone. It belongs to the goroutine and to the life of its scope.
type Tensor struct {
	s       *Scope
	dtype   DType
	shape   []int // never written
	strides []int // in elements
	off     int   // in elements
	st      *storage
	seen    int    // the storage's version that this handle means
	h       *held  // nil: no frame's
	slot    *slot  // where its gradient goes; nil: none wanted
	remake  *entry // makes it again from what that entry saved
}

func numel(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= max(0, d)
	}
	return n
}

func (t *Tensor) In(*Scope) *Tensor { return t }

// Shape is right after a failure too.
func (t *Tensor) Shape() []int  { return slices.Clone(t.shape) }
func (t *Tensor) DType() DType  { return t.dtype }
func (t *Tensor) Scope() *Scope { return t.s }

// Len is the number of elements.
func (t *Tensor) Len() int { return numel(t.shape) }

// Dim is the length of the i-th dimension, from the end for negative i, and 0 where
// there is none.
func (t *Tensor) Dim(i int) int {
	if i < 0 {
		i += len(t.shape)
	}
	if i < 0 || i >= len(t.shape) {
		return 0
	}
	return t.shape[i]
}

// Dims is the number of dimensions.
func (t *Tensor) Dims() int { return len(t.shape) }

func (t *Tensor) contiguous() bool { return driver.Contiguous(t.shape, t.strides) }

// array is what a kernel sees of t.
func (t *Tensor) array() driver.Array {
	a := driver.Array{Type: t.dtype, Shape: t.shape, Strides: t.strides}
	if t.s.dev.values && t.st != nil && t.st.mem != nil {
		a.Data = t.st.mem.Bytes()[t.off*t.dtype.Size():]
	}
	return a
}

// Upload has copied data when it returns; the scope frees the tensor.
func Upload[T Number](s *Scope, data []T, shape ...int) *Tensor {
	dtype := dtypeOf[T]()
	if !s.ok("upload") {
		return s.blank(dtype, shape)
	}
	s.now = s.site("upload")
	if err := checkShape(shape); err != nil {
		s.fail(s.now, err)
	} else if len(data) != numel(shape) {
		s.fail(s.now, fmt.Errorf("%w: %d values for %v", ErrShape, len(data), shape))
	}
	cat := s.cat
	s.cat = memory.Inputs
	t := s.result(dtype, slices.Clone(shape))
	s.cat = cat
	if s.err == nil && s.dev.values && t.st != nil {
		s.fail(s.now, write(s.dev, t.array().Data, data))
	}
	return t
}

func upload[T Number](dst []byte, data []T) {
	switch d := any(data).(type) {
	case []float32:
		copy(driver.Cast[float32](dst), d)
	case []float64:
		copy(driver.Cast[float64](dst), d)
	case []int64:
		copy(driver.Cast[int64](dst), d)
	case []int32:
		copy(driver.Cast[int32](dst), d)
	case []uint8:
		copy(dst, d)
	case []bool:
		copy(driver.Cast[bool](dst), d)
	case []int:
		out := driver.Cast[int64](dst)
		for i, v := range d {
			out[i] = int64(v)
		}
	}
}

func checkShape(shape []int) error {
	n := 1
	for _, d := range shape {
		if d < 0 {
			return fmt.Errorf("%w: %v has a negative dimension", ErrShape, shape)
		}
		if d > math.MaxInt/8/n { // 8 bytes an element at most
			return fmt.Errorf("%w: %v has more elements than can be counted", ErrShape, shape)
		}
		n *= max(1, d)
	}
	return nil
}

// value is why t cannot be read on the host, or nil.
func (t *Tensor) value() error {
	t.s.needs(0)
	switch {
	case t.s.err != nil:
		return t.s.err
	case t.s.done || t.st == nil:
		return fmt.Errorf("%s: the scope that made it has ended: %w", t.maker(), ErrFreed)
	case !t.s.dev.values:
		return ErrNoValues
	}
	return t.s.ready(t)
}

// Download waits and returns a copy, row-major; nil on failure. T is the tensor's type;
// float32 takes the 16-bit floats too, float64 every number, uint8 also Bool.
func Download[T Number](t *Tensor) ([]T, error) {
	if err := t.value(); err != nil {
		return nil, err
	}
	a, err := t.hostArray()
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	out := make([]T, t.Len())
	switch d := any(out).(type) {
	case []float32:
		switch t.dtype {
		case Float32:
			driver.Gather(d, &a)
			return out, nil
		case BFloat16, Float16:
			driver.GatherFloat(d, &a)
			return out, nil
		}
	case []float64:
		driver.GatherFloat(d, &a)
		return out, nil
	case []int64:
		if t.dtype == Int64 {
			driver.Gather(d, &a)
			return out, nil
		}
	case []int:
		if t.dtype == Int64 {
			n := make([]int64, len(out))
			driver.Gather(n, &a)
			for i, v := range n {
				d[i] = int(v)
			}
			return out, nil
		}
	case []int32:
		if t.dtype == Int32 {
			driver.Gather(d, &a)
			return out, nil
		}
	case []uint8:
		if t.dtype == Uint8 || t.dtype == Bool {
			driver.Gather(d, &a)
			return out, nil
		}
	case []bool:
		if t.dtype == Bool {
			driver.Gather(d, &a)
			return out, nil
		}
	}
	return nil, fmt.Errorf("download: %w: a tensor of %s as %T", ErrDType, t.dtype, out)
}

// Item waits and is the only element, NaN on failure.
func (t *Tensor) Item() (float64, error) {
	if t.Len() != 1 {
		if err := t.value(); err != nil {
			return math.NaN(), err
		}
		return math.NaN(), fmt.Errorf("item: %w: one element wanted, got %v", ErrShape, t.shape)
	}
	v, err := Download[float64](t)
	if err != nil {
		return math.NaN(), err
	}
	return v[0], nil
}

// String waits and shows mean, deviation and first values, or why there are none. It
// never fails the scope.
func (t *Tensor) String() string {
	head := t.dtype.String() + fmt.Sprint(t.shape)
	if err := t.value(); err != nil {
		return fmt.Sprintf("%s no value: %v", head, err)
	}
	v, err := Download[float64](t)
	if err != nil {
		return fmt.Sprintf("%s no value: %v", head, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s", head, t.s.dev.name)
	if t.dtype.Float() && len(v) > 1 {
		var sum, dev float64
		for _, x := range v {
			sum += x
		}
		mean := sum / float64(len(v))
		for _, x := range v {
			dev += (x - mean) * (x - mean)
		}
		fmt.Fprintf(&b, " mean %.4g std %.4g", mean, math.Sqrt(dev/float64(len(v)-1)))
	}
	b.WriteString(" [")
	for i, x := range v[:min(6, len(v))] {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%.5g", x)
	}
	if len(v) > 6 {
		b.WriteString(" …")
	}
	b.WriteByte(']')
	return b.String()
}

// Keep makes t readable after Backward and after its block, until the scope ends.
func (t *Tensor) Keep() *Tensor {
	if t.h == nil || t.h.frame == nil {
		return t
	}
	t.h.keep = true
	root := t.h.frame
	for root.up != nil {
		root = root.up
	}
	if t.h.frame != root && t.s.replaying == 0 {
		t.h.frame = root
		root.made = append(root.made, t.h)
	}
	return t
}

// Free gives up t before its block or scope ends; what backward needs, and what views of
// it are still held, stays.
func (t *Tensor) Free() { t.h.drop() }

// Track asks for t's gradient; Grad reads it after Backward.
func (t *Tensor) Track() *Tensor {
	if t.slot == nil && t.dtype.Float() {
		t.slot = &slot{leaf: true, dtype: t.dtype}
		t.s.leaves = append(t.s.leaves, t.slot)
	}
	return t
}

// Grad is a tracked tensor's gradient, nil before Backward.
func (t *Tensor) Grad() *Tensor {
	if t.slot == nil || !t.slot.leaf || t.slot.grad == nil {
		return nil
	}
	return t.slot.grad
}

// Detach is the same storage with no gradient through it.
func (t *Tensor) Detach() *Tensor {
	if t.st == nil {
		return t.s.blank(t.dtype, t.shape)
	}
	return t.s.own(t.alias())
}

// Compact gives a view that uses a part of its storage one of its own, and its share in
// the old one back: t itself, with the same values and gradient.
func (t *Tensor) Compact() *Tensor {
	s := t.s
	if !s.ok("compact") || t.st == nil || t.h == nil || t.h.frame == nil || t.st.bytes == int64(t.Len())*int64(t.dtype.Size()) {
		return t
	}
	s.now = s.site("compact")
	if err := s.ready(t); err != nil {
		s.fail(s.now, err)
		return t
	}
	c := s.result(t.dtype, t.shape)
	s.kernel("copy", nil, [3]uint64{}, []*Tensor{c}, t)
	if s.err != nil {
		return t
	}
	if f := t.h.frame; f != s.frame { // it lives as long as t
		s.take(c)
		c.h.frame = f
		c.st.frames = append(c.st.frames, c.h)
		f.made = append(f.made, c.h)
	}
	t.h.drop()
	c.h.t = weak.Make(t)
	t.strides, t.off, t.st, t.seen, t.h, t.remake = c.strides, 0, c.st, c.seen, c.h, nil
	return t
}
