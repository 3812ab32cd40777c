package cuda

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snug-ml/snug/internal/driver"
)

var all = append(slices.Clone(floats), driver.Int64, driver.Int32, driver.Uint8, driver.Bool)

// elementwise registers kernels of module, made as kernels/elementwise.cuh says. Inputs
// may be of any strides and are broadcast to the output, which may be the first input.
func elementwise(module string, types []driver.DType, names ...string) {
	for _, name := range names {
		register(name, types, driver.Kernel{Strided: true, Run: each(module, name)})
	}
}

// each runs the kernels of that name.
func each(module, name string) func(*driver.Args) {
	of := functions(name)
	return func(a *driver.Args) {
		t := a.In[0].Type
		eachBy(a, module, of[t], 16/t.Size())
	}
}

// functions are what the kernels of that name are called in CUDA C, by type.
func functions(name string) (of [driver.Bool + 1]string) {
	for t := range of {
		of[t] = function(name, driver.DType(t))
	}
	return of
}

func function(name string, t driver.DType) string {
	return strings.ReplaceAll(name, " ", "_") + suffixes[t]
}

// eachBy runs a function with the two numbers that it may have; of dense operands a thread
// takes so many elements at a time.
func eachBy(a *driver.Args, module, function string, at int) {
	n := a.Out[0].Len()
	if n == 0 {
		return
	}
	var all [maxOperands]*driver.Array
	operands := append(all[:0], &a.Out[0])
	for i := range a.In {
		operands = append(operands, &a.In[i])
	}
	var f [2]float64
	copy(f[:], a.F)
	var buf [maxRank]dim
	dims, even := buf[:0], dense(operands...)
	if even {
		dims = append(dims, dim{n, [maxOperands]int{1, 1, 1, 1}})
	} else {
		dims, at = joint(dims, operands), 1
	}
	var list [5 + maxOperands]any
	params := append(list[:0], n, even, walk(dims, len(operands)), f[0], f[1])
	for _, o := range operands {
		params = append(params, o)
	}
	run(a, module, function, spread(n, at), params...)
}

// run launches blocks of threads.
func run(a *driver.Args, module, function string, grid [3]int, params ...any) {
	launch(a, module, function, grid, [3]int{threads, 1, 1}, 0, params...)
}

// one is the grid, and the block, of a kernel for a single thread.
var one = [3]int{1, 1, 1}

// spread is a grid for n elements, of which a thread takes so many at a time, and more
// than once where there are many.
func spread(n, each int) [3]int { return [3]int{min(4096, line(n, threads*each)[0]), 1, 1} }

// dense reports whether elements of one number lie at the same place in all arrays, which
// begin at multiples of 16 bytes: so they can be read as vectors.
func dense(arrays ...*driver.Array) bool {
	return !slices.ContainsFunc(arrays, func(a *driver.Array) bool {
		return !slices.Equal(a.Shape, arrays[0].Shape) || !a.Contiguous() || address(a.Data)%16 != 0
	})
}

// maxOperands is how many arrays an elementwise kernel has at most, the output included.
const maxOperands = 4

// dim is a dimension of several arrays.
type dim struct {
	length  int
	strides [maxOperands]int
}

// joint are the dimensions of arrays that are broadcast to the shape of the first. They are
// joined where they lie one after the other in all of them.
func joint(dims []dim, arrays []*driver.Array) []dim {
	shape := arrays[0].Shape
	for i, length := range shape {
		if length == 1 {
			continue
		}
		d := dim{length: length}
		for k, a := range arrays {
			if own := i - len(shape) + len(a.Shape); own >= 0 && a.Shape[own] != 1 {
				d.strides[k] = a.Strides[own]
			}
		}
		if n := len(dims); n > 0 && follows(&d, &dims[n-1]) {
			d.length *= dims[n-1].length
			dims = dims[:n-1]
		}
		dims = append(dims, d)
	}
	return dims
}

// follows reports whether a dimension lies inside another without gaps.
func follows(d, outer *dim) bool {
	for k, s := range d.strides {
		if outer.strides[k] != d.length*s {
			return false
		}
	}
	return true
}

// walk is struct Walk of elementwise.cuh: how so many arrays lie.
func walk(dims []dim, arrays int) []uint64 {
	if len(dims) > maxRank {
		panic(fmt.Sprintf("cuda: %d arrays have more than %d dimensions together: %v", arrays, maxRank, dims))
	}
	w := make([]uint64, 1+maxRank*(1+arrays))
	w[0] = uint64(len(dims))
	for i, d := range dims {
		w[1+i] = uint64(d.length)
		for k := range arrays {
			w[1+maxRank*(1+k)+i] = uint64(d.strides[k])
		}
	}
	return w
}
