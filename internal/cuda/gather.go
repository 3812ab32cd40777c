package cuda

import (
	"fmt"

	"github.com/snug-ml/snug/internal/driver"
)

func init() {
	space := func(a *driver.Args) int64 { return scatterSpace(a.In[1].Len()) }
	register("index select", floats, driver.Kernel{Mixed: true, Run: indexSelect})
	register("index select backward", floats, driver.Kernel{Mixed: true, Run: indexSelectBackward, Workspace: space})
	register("gather", floats, driver.Kernel{Mixed: true, Run: gather})
	register("gather backward", floats, driver.Kernel{Mixed: true, Run: gatherBackward, Workspace: func(a *driver.Args) int64 {
		if usesInLane(a) <= fewUses {
			return 0
		}
		return space(a)
	}})
}

// selectRows copies rows of width elements: of each n of x the k that index names.
func selectRows(a *driver.Args, rows, k, n, width int) {
	x, y := &a.In[0], &a.Out[0]
	if rows*width == 0 {
		return
	}
	// The longest unit that rows consist of and all addresses are multiples of.
	bytes, unit := width*x.Type.Size(), 16
	for uint64(unit-1)&(uint64(bytes)|address(x.Data)|address(y.Data)) != 0 {
		unit /= 2
	}
	units := bytes / unit
	wide := abreast(units)
	launch(a, "gather", fmt.Sprint("select", unit), rowBlocks(rows, wide), [3]int{threads, 1, 1}, 0,
		rows, k, n, units, wide, x, indexWords(&a.In[1]), y)
}

// indexSelect: x, index; F: n slices, of inner elements each.
func indexSelect(a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	if inner > 0 {
		selectRows(a, a.Out[0].Len()/inner, a.In[1].Len(), n, inner)
	}
}

// indexSelectBackward: dy, index; F: n, inner.
func indexSelectBackward(a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	outer := a.Out[0].Len() / max(1, n*inner)
	scatter(a, uses{index: &a.In[1], places: n}, outer, a.In[1].Len(), n, inner, -1)
}

// gather: x, index; F: n, inner.
func gather(a *driver.Args) {
	n, inner, y := int(a.F[0]), int(a.F[1]), &a.Out[0]
	if y.Len() == 0 {
		return
	}
	k := y.Len() / (a.In[0].Len() / n)
	launch(a, "gather", fmt.Sprint("gather", y.Type.Size()), line(min(y.Len(), 1<<20), threads), [3]int{threads, 1, 1}, 0,
		y.Len(), k, n, inner, &a.In[0], indexWords(&a.In[1]), y)
}

// fewUses of a lane are looked through for each element of its gradient.
const fewUses = 16

// usesInLane is how many elements of index a lane has.
func usesInLane(a *driver.Args) int {
	return a.In[1].Len() / max(1, a.Out[0].Len()/max(1, int(a.F[0])))
}

// gatherBackward: dy, index; F: n, inner.
func gatherBackward(a *driver.Args) {
	n, inner, k, dx := int(a.F[0]), int(a.F[1]), usesInLane(a), &a.Out[0]
	if dx.Len() == 0 {
		return
	}
	if k <= fewUses {
		launch(a, "gather", "gatherback"+suffixes[dx.Type], line(min(dx.Len(), 1<<20), threads), [3]int{threads, 1, 1}, 0,
			dx.Len(), k, n, inner, &a.In[0], indexWords(&a.In[1]), dx)
		return
	}
	scatter(a, uses{index: &a.In[1], k: k, n: n, inner: inner, each: true, places: dx.Len()}, 1, k, n, 1, -1)
}
