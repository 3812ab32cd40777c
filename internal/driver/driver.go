// Package driver is what a backend supplies: kernels by name and type of elements, and
// how they see memory. Nothing here knows of tensors.
package driver

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"
)

// Array is a kernel's view of memory. Data begins at the first element. Strides count
// elements; they are never negative, and 0 where a dimension is broadcast.
type Array struct {
	Type    DType
	Shape   []int
	Strides []int
	Data    []byte // empty in a dry run
}

// Len is the number of elements.
func (a *Array) Len() int { return Numel(a.Shape) }

// Numel is the number of elements of a shape.
func Numel(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Contiguous reports whether the elements lie row-major without gaps.
func (a *Array) Contiguous() bool { return Contiguous(a.Shape, a.Strides) }

func Contiguous(shape, strides []int) bool {
	n, gaps := 1, false
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] == 0 {
			return true
		}
		gaps = gaps || shape[i] != 1 && strides[i] != n
		n *= shape[i]
	}
	return !gaps
}

// RowMajor are the strides of a contiguous array.
func RowMajor(shape []int) []int { return AppendRowMajor(nil, shape) }

// AppendRowMajor is RowMajor in the memory of dst, which is empty, if there is enough.
func AppendRowMajor(dst, shape []int) []int {
	s := slices.Grow(dst, len(shape))[:len(shape)]
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(1, shape[i])
	}
	return s
}

// Elem are the types that elements have on the host.
type Elem interface {
	float32 | float64 | B16 | F16 | int64 | int32 | uint8 | bool
}

// Of reads an array's memory as elements, from the first one on.
func Of[T Elem](a *Array) []T { return Cast[T](a.Data) }

// Cast reads bytes as elements.
func Cast[T Elem](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}

// Args are a kernel's arguments.
type Args struct {
	Out, In []Array
	F       []float64 // numbers, in the order that the kernel's comment gives
	Scale   float64   // for kernels that say Scaled; 0: 1
	Key     [3]uint64 // seed, tick and draw, for kernels that draw
	Work    []byte    // as many bytes as Workspace said, or none in a dry run
	Threads int       // at most so many; the result's bits do not depend on it
	Queue   any       // where a backend that has queues runs this kernel
	Err     error     // the first failure to start what a kernel consists of there
}

// Kernel never allocates. Workspace reads shapes, types, numbers and Threads only, so
// that a dry run can call it; the caller allocates that many bytes.
type Kernel struct {
	Run       func(*Args)
	Group     func([]*Args) // optional: what Run does to each of them, at once and with the same bits
	Workspace func(*Args) int64
	// Strided kernels read inputs of any strides; others get contiguous ones. Outputs are
	// contiguous, but where Strided says that the first one may be a view, too.
	Strided bool
	Mixed   bool // inputs may have other types than the first one
	Scaled  bool // it multiplies its first input by Args.Scale
	// Wide kernels of 16 bits take a second input of float32 for weights, which they round,
	// and give weights' gradients of float32.
	Wide bool
}

// table has a backend's kernels by name.
var table = map[string]map[string]*[dtypes]Kernel{}

// Register is called from the init of the file that holds the kernel. dtype is that of
// the first input or, for a kernel without inputs, of the first output.
func Register(name string, dtype DType, backend string, k Kernel) {
	if table[backend] == nil {
		table[backend] = map[string]*[dtypes]Kernel{}
	}
	kernels := table[backend][name]
	if kernels == nil {
		kernels = new([dtypes]Kernel)
		table[backend][name] = kernels
	}
	if kernels[dtype].Run != nil {
		panic(fmt.Sprintf("driver: %s of %s for %s registered twice", name, dtype, backend))
	}
	kernels[dtype] = k
}

// Find returns a registered kernel.
func Find(name string, dtype DType, backend string) (Kernel, error) {
	if k := table[backend][name]; k != nil && k[dtype].Run != nil {
		return k[dtype], nil
	}
	return Kernel{}, fmt.Errorf("no kernel %q of %s for %s", name, dtype, backend)
}

// Names are those of a backend's kernels.
func Names(backend string) []string { return slices.Sorted(maps.Keys(table[backend])) }

// Bytes is the memory of Go values, for kernels that write to the host.
func Bytes[T Elem](v []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(z)))
}

// Expand is a as shape, to which it is broadcast from the right.
func Expand(a *Array, shape []int) Array {
	e := *a
	e.Shape, e.Strides = shape, make([]int, len(shape))
	lead := len(shape) - len(a.Shape)
	for i, d := range a.Shape {
		if d != 1 {
			e.Strides[lead+i] = a.Strides[i]
		}
	}
	return e
}
