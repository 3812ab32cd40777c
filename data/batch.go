package data

import (
	"fmt"
	"iter"
	"slices"

	"github.com/snug-ml/snug"
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

// In puts a batch on the scope's device, which frees it: x in Shape, y as int64 in Target.
// Bytes travel as they are and become floats from 0 to 1 there. Floats, from bytes or
// not, are then normalized to (x - Mean) / Std where the batch has these. Integers, such
// as tokens, stay what they are.
func (b Batch) In(s *snug.Scope) (x, y *snug.Tensor) {
	y = snug.Upload(s, b.Y, b.Target...)
	switch {
	case b.X.I64 != nil:
		return snug.Upload(s, b.X.I64, b.Shape...), y
	case b.X.U8 != nil:
		bytes := snug.Upload(s, b.X.U8, b.Shape...)
		x = bytes.Cast(snug.Float32)
		bytes.Free()
		if b.Mean == nil {
			return x.MulInPlace(snug.Upload(s, []float32{1. / 255})), y
		}
	default:
		x = snug.Upload(s, b.X.F32, b.Shape...)
	}
	if b.Mean == nil {
		return x, y
	}
	unit := float32(1)
	if b.X.U8 != nil {
		unit = 255
	}
	scale, offset := make([]float32, len(b.Mean)), make([]float32, len(b.Mean))
	for c, mean := range b.Mean {
		scale[c], offset[c] = 1/(unit*b.Std[c]), -mean/b.Std[c]
	}
	each := make([]int, len(b.Shape)-1) // one a channel: [3 1 1]
	for i := range each {
		each[i] = 1
	}
	each[0] = len(b.Mean)
	return x.MulInPlace(snug.Upload(s, scale, each...)).AddInPlace(snug.Upload(s, offset, each...)), y
}
