package cuda

import "github.com/snug-ml/snug/internal/driver"

// uses are the words of struct Uses: the elements of an index, each of which names one of
// places. They are rows, or with each elements in lanes of k uses and n elements, inner
// apart.
type uses struct {
	index       *driver.Array
	k, n, inner int
	each        bool
	places      int
}

func (u *uses) words() []uint64 {
	w := append(indexWords(u.index), uint64(u.index.Len()), uint64(u.k), uint64(u.n), uint64(u.inner), 0)
	if u.each {
		w[len(w)-1] = 1
	}
	return w
}

// indexWords are the words of struct Index.
func indexWords(a *driver.Array) []uint64 {
	w := []uint64{address(a.Data), 0}
	if a.Type == driver.Int64 {
		w[1] = 1
	}
	return w
}

// scatterSpace is for two orders of count uses, and counts of digits for each block of them.
func scatterSpace(count int) int64 {
	return int64(8 * (2*count + (count+255)/256*256))
}

// scatter adds up the uses of each place: dy [outer k inner] to dx [outer n inner], where
// those of padding are left out. The order of additions is that of the uses.
func scatter(a *driver.Args, u uses, outer, k, n, inner, padding int) {
	count, dy, dx := u.index.Len(), &a.In[0], &a.Out[0]
	if dx.Len() == 0 {
		return
	}
	zero(a, dx.Data[:dx.Len()*dx.Type.Size()])
	if count == 0 {
		return
	}
	words, blocks := u.words(), (count+255)/256
	var order []byte
	next, other, counts := a.Work[:8*count], a.Work[8*count:16*count], a.Work[16*count:]
	for shift := 0; (u.places-1)>>shift > 0; shift += 8 {
		launch(a, "scatter", "scattercount", line(blocks, 1), [3]int{256, 1, 1}, 0, words, order, shift, counts)
		launch(a, "scatter", "scatterscan", line(1, 1), [3]int{256, 1, 1}, 0, blocks, counts)
		launch(a, "scatter", "scatterplace", line(blocks, 1), [3]int{256, 1, 1}, 0, words, order, shift, counts, next)
		order, next, other = next, other, next
	}
	// Of many columns, each block takes some: a place that is used much has a thread for each.
	wide := min(64, abreast(outer*inner))
	grid := line(count, threads/wide)
	grid[1] = min((outer*inner+wide-1)/wide, 1<<15)
	launch(a, "scatter", "scattersum"+suffixes[dx.Type], grid, [3]int{threads, 1, 1}, 0,
		words, order, outer, k, n, inner, padding, wide, dy, dx)
}
