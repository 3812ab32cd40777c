package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("sum", floats, driver.Kernel{
		Strided:   true,
		Workspace: func(a *driver.Args) int64 { return lastDims(a).workspace() },
		Run:       func(a *driver.Args) { reduceLast(a, "sum", "sum") },
	})
	register("square sum", floats, driver.Kernel{
		Workspace: func(a *driver.Args) int64 {
			if n := squareParts(a); n > 1 {
				return int64(n) * 8
			}
			return 0
		},
		Run:   func(a *driver.Args) { squareSums([]*driver.Args{a}) },
		Group: squareSums,
	})
}

// squareParts are what a sum of squares is put together of.
func squareParts(a *driver.Args) int {
	const chunk = 16384 // as in sum.cu
	return (a.In[0].Len() + chunk - 1) / chunk
}

// squareSums makes all of them in two launches, as far as they have room in one table.
func squareSums(as []*driver.Args) {
	t := newTable(100, 5)
	defer t.give()
	single := true // all are of one part, which is the sum
	for i, a := range as {
		x, out, parts := &a.In[0], address(a.Out[0].Data), squareParts(a)
		work := out
		if parts > 1 {
			work = address(a.Work)
		}
		single = single && parts == 1
		t.add(parts, aligned([]*driver.Array{x}), []uint64{address(x.Data), work, out, uint64(x.Len())})
		if !t.full() && i < len(as)-1 {
			continue
		}
		if t.blocks > 0 {
			run(a, "sum", function("square sums", x.Type), [3]int{t.blocks, 1, 1}, t.all())
		}
		if !single {
			run(a, "sum", "square_sums_of_parts", [3]int{t.len(), 1, 1}, t.all())
		}
		t.clear()
		single = true
	}
}

// reduceLast makes a sum of each set of last F[0] dimensions, times F[1].
func reduceLast(a *driver.Args, module, name string, params ...any) {
	x := &a.In[0]
	outer, inner := split(x, len(x.Shape)-int(a.F[0]))
	lastDims(a).run(a, a.Work, &a.Out[0], a.F[1], module, function(name, x.Type),
		append([]any{x, layoutOf(&outer, outer.Shape), layoutOf(&inner, inner.Shape)}, params...)...)
}

func lastDims(a *driver.Args) reduction {
	x := &a.In[0]
	outer, inner := split(x, len(x.Shape)-int(a.F[0]))
	return newReduction(outer.Len(), inner.Len(), lastStride(&outer) == 1 && lastStride(&inner) != 1)
}

// split is an array's first dimensions, and the others.
func split(a *driver.Array, first int) (outer, inner driver.Array) {
	outer, inner = *a, *a
	outer.Shape, inner.Shape = a.Shape[:first], a.Shape[first:]
	outer.Strides, inner.Strides = a.Strides[:first], a.Strides[first:]
	return outer, inner
}

// lastStride is of the last dimension that is longer than 1; 0 if none is.
func lastStride(a *driver.Array) int {
	if _, strides := driver.Collapse(a.Shape, a.Strides); len(strides) > 0 {
		return strides[len(strides)-1]
	}
	return 0
}
