// Package cuda is the CUDA backend. What each kernel launches is plain Go that builds
// everywhere, so that a dry run knows every workspace; what calls the driver stands behind
// the build tag cuda. A kernel stands in a file of its operation's name, and its device
// code in a .cu file of that name under kernels.
package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/snug-ml/snug/internal/driver"
)

//go:generate ptx/build.sh

const backend = "cuda"

// Launch is one run of a compiled kernel.
type Launch struct {
	Module, Function string // a .cu file without its ending, and a kernel in it
	Grid, Block      [3]int
	Shared           int      // bytes of dynamic shared memory
	Params           []uint64 // each begins at a word of its own
	Starts           []int    // of the parameters in Params
}

// Queue runs kernels in the order that they are given, on one stream. An error is of
// starting one; what happens later is the device's next synchronisation's to report.
type Queue interface {
	Launch(*Launch) error
	Zero(mem []byte) error
}

// suffixes end the names of kernels that exist for several types of elements.
var suffixes = map[driver.DType]string{
	driver.Float32: "_f32", driver.Float64: "_f64", driver.BFloat16: "_b16", driver.Float16: "_f16",
	driver.Int64: "_i64", driver.Int32: "_i32", driver.Uint8: "_u8", driver.Bool: "_b8",
}

var floats = []driver.DType{driver.Float32, driver.Float64, driver.BFloat16, driver.Float16}

// register is for kernels whose device code exists for the given types.
func register(name string, types []driver.DType, k driver.Kernel) {
	for _, t := range types {
		driver.Register(name, t, backend, k)
	}
}

// threads is how many one block has, where the kernel does not say otherwise.
const threads = 256

// launches are used again.
var launches = sync.Pool{New: func() any { return &Launch{Params: make([]uint64, 0, 128), Starts: make([]int, 0, 32)} }}

// launch runs a kernel on a's queue. A parameter is an int (long in C), int32, float32,
// float64, uint64, bool (int), *driver.Array (its first element; nil: null),
// []byte, layout or operand (struct Layout and struct Operand of common.cuh), or the
// words of another struct.
func launch(a *driver.Args, module, function string, grid, block [3]int, shared int, params ...any) {
	l := launches.Get().(*Launch)
	defer launches.Put(l)
	*l = Launch{Module: module, Function: function, Grid: grid, Block: block, Shared: shared, Params: l.Params[:0], Starts: l.Starts[:0]}
	for _, p := range params {
		l.Starts = append(l.Starts, len(l.Params))
		switch p := p.(type) {
		case int:
			l.Params = append(l.Params, uint64(p))
		case int32:
			l.Params = append(l.Params, uint64(uint32(p)))
		case bool:
			one := uint64(0)
			if p {
				one = 1
			}
			l.Params = append(l.Params, one)
		case float32:
			l.Params = append(l.Params, uint64(f32bits(p)))
		case float64:
			l.Params = append(l.Params, f64bits(p))
		case uint64:
			l.Params = append(l.Params, p)
		case *driver.Array:
			if p == nil {
				l.Params = append(l.Params, 0)
				break
			}
			l.Params = append(l.Params, address(p.Data))
		case []byte:
			l.Params = append(l.Params, address(p))
		case layout:
			l.Params = p.append(l.Params)
		case operand:
			l.Params = p.append(l.Params)
		case []uint64:
			l.Params = append(l.Params, p...)
		default:
			panic("cuda: " + function + " has a parameter of a type that no kernel takes") // naming it would have all of them allocated
		}
	}
	started(a, a.Queue.(Queue).Launch(l))
}

// zero clears memory on a's queue.
func zero(a *driver.Args, mem []byte) { started(a, a.Queue.(Queue).Zero(mem)) }

func started(a *driver.Args, err error) {
	if a.Err == nil {
		a.Err = err
	}
}

func address(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

func f32bits(f float32) uint32 { return *(*uint32)(unsafe.Pointer(&f)) }
func f64bits(f float64) uint64 { return *(*uint64)(unsafe.Pointer(&f)) }

// line is a grid of one block for each of n rows or, with each > 1, for so many of them.
func line(n, each int) [3]int { return [3]int{max(1, (n+each-1)/each), 1, 1} }

// maxRank is how many dimensions a layout has at most, after those are joined that lie one
// after the other.
const maxRank = 8

// layout is struct Layout of common.cuh: how an array's elements lie, in the order of
// the elements of a shape to which it is broadcast.
type layout struct {
	rank           int
	shape, strides [maxRank]int
}

// layoutOf is a's, as shape. Dimensions are joined where they lie one after the other; an
// array without gaps has rank 0 or 1 and stride 1.
func layoutOf(a *driver.Array, shape []int) layout {
	var l layout // filled here, not by Expand and Collapse, whose slices would be allocated
	lead := len(shape) - len(a.Shape)
	for i, d := range shape {
		stride := 0
		if i >= lead && a.Shape[i-lead] != 1 {
			stride = a.Strides[i-lead]
		}
		switch last := l.rank - 1; {
		case d == 1:
		case last >= 0 && l.strides[last] == d*stride:
			l.shape[last], l.strides[last] = l.shape[last]*d, stride
		case l.rank == maxRank:
			panic(fmt.Sprintf("cuda: an array of %d dimensions and more, %d at most", maxRank+1, maxRank))
		default:
			l.shape[l.rank], l.strides[l.rank] = d, stride
			l.rank++
		}
	}
	return l
}

func (l layout) words() []uint64 { return l.append(nil) }

func (l layout) append(w []uint64) []uint64 {
	w = append(w, uint64(l.rank))
	for _, d := range l.shape {
		w = append(w, uint64(d))
	}
	for _, d := range l.strides {
		w = append(w, uint64(d))
	}
	return w
}

// operand is struct Operand of common.cuh: an array whose type the kernel learns as it runs.
type operand struct {
	array  *driver.Array
	layout layout
}

// operandOf is a, as shape. Without an array its address is null.
func operandOf(a *driver.Array, shape []int) operand {
	if a == nil {
		return operand{}
	}
	return operand{a, layoutOf(a, shape)}
}

func (o operand) append(w []uint64) []uint64 {
	if o.array == nil {
		w = append(w, 0, 0)
	} else {
		w = append(w, address(o.array.Data), uint64(o.array.Type))
	}
	return o.layout.append(w)
}
