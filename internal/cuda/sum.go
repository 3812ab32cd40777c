package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("sum", floats, driver.Kernel{
		Strided:   true,
		Workspace: func(a *driver.Args) int64 { return lastDims(a).workspace() },
		Run:       func(a *driver.Args) { reduceLast(a, "sum", "sum") },
	})
	register("square sum", floats, driver.Kernel{
		Workspace: func(a *driver.Args) int64 { return squares(a).workspace() },
		Run: func(a *driver.Args) {
			flat := flatten(&a.In[0])
			squares(a).run(a, a.Work, &a.Out[0], 1, "sum", function("square sum", flat.Type),
				&flat, layout{}, layoutOf(&flat, flat.Shape))
		},
	})
}

func squares(a *driver.Args) reduction { return newReduction(1, a.In[0].Len(), false) }

// flatten is a contiguous array as one row.
func flatten(a *driver.Array) driver.Array {
	f := *a
	f.Shape, f.Strides = []int{a.Len()}, []int{1}
	return f
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
