package data

import (
	"fmt"
	"iter"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
)

// Batch is some samples on the host. What a Loader gives is overwritten once the next
// batch is asked for; Clone keeps it.
type Batch struct {
	X      Values
	Y      []int64
	Shape  []int // of X: samples first
	Target []int // of Y: samples first

	// Mean and Std are the LoaderConfig's; In normalizes with them.
	Mean, Std []float32
}

func newBatch(s Spec, n int) Batch {
	b := Batch{Shape: slices.Concat([]int{n}, s.Shape), Target: slices.Concat([]int{n}, s.Target)}
	b.X = makeValues(s.Type, driver.Numel(b.Shape))
	b.Y = make([]int64, driver.Numel(b.Target))
	return b
}

// Len is the number of samples.
func (b Batch) Len() int {
	if len(b.Shape) == 0 {
		return 0
	}
	return b.Shape[0]
}

func (b Batch) Clone() Batch {
	b.X, b.Y = b.X.clone(), slices.Clone(b.Y)
	return b
}

// slice is the samples from … to-1, in the same memory.
func (b Batch) slice(from, to int) Batch {
	size, targets := driver.Numel(b.Shape[1:]), driver.Numel(b.Target[1:])
	b.X, b.Y = b.X.slice(from*size, to*size), b.Y[from*targets:to*targets:to*targets]
	b.Shape = slices.Concat([]int{to - from}, b.Shape[1:])
	b.Target = slices.Concat([]int{to - from}, b.Target[1:])
	return b
}

// Split cuts a batch into micro-batches of size samples, the last of which may be
// smaller; true comes with that last one. They lie in the batch's memory. A size below 1
// panics.
func (b Batch) Split(size int) iter.Seq2[Batch, bool] {
	if size < 1 {
		panic(fmt.Sprintf("data: micro-batches of %d samples", size))
	}
	return func(yield func(Batch, bool) bool) {
		for from, n := 0, b.Len(); from < n; from += size {
			to := min(n, from+size)
			if !yield(b.slice(from, to), to == n) {
				return
			}
		}
	}
}
