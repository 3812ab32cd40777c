package snug

import (
	"errors"
	"fmt"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
)

// ErrIndex is an index that a table has no row for.
var ErrIndex = errors.New("index out of range")

// Embedding is the rows of w [rows width] that index names, an Int64 or Int32 tensor [n…]:
// [n… width]. The gradient of a row is the sum of those of all its uses, in order; the row
// padding, -1 for none, gets none. It saves the indices alone.
func Embedding(w Operand, index *Tensor, padding int) *Tensor {
	if w != nil && index != nil { // else Apply says what is nil
		w = w.In(index.s)
	}
	return Apply(&Op{
		Name: "embedding",
		Shape: func(in ...[]int) ([]int, error) {
			w, index := in[0], in[1]
			if len(w) != 2 {
				return append(slices.Clone(index), w[max(0, len(w)-1):]...), fmt.Errorf("%w: w %v, [rows width] wanted", ErrShape, w)
			}
			return append(slices.Clone(index), w[1]), nil
		},
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			w, index := in[0], in[1]
			c.checkIndex(index, w.shape[0])
			c.Save("index", index)
			return c.Run("embedding", append(slices.Clone(index.shape), w.shape[1]), nil, w, index)
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			return c.gradient(c.Run("embedding backward", c.Shape(0), []float64{float64(padding)}, dy, c.Saved("index")))
		},
	}, w, index)
}

// checkIndex fails where an index is not in [0, rows). Kernels cannot.
func (c *Call) checkIndex(index *Tensor, rows int) {
	if index.dtype != Int64 && index.dtype != Int32 {
		c.s.fail(c.e.site, fmt.Errorf("%w: an index of %s, int64 or int32 wanted", ErrDType, index.dtype))
		return
	}
	outside := c.RunAs("index outside", Int64, []int{2}, []float64{float64(rows)}, index)
	if outside.st == nil || !c.s.dev.values {
		return
	}
	a, err := outside.hostArray() // waits
	if err != nil {
		c.s.fail(c.e.site, err)
	} else if found := driver.Of[int64](&a); found[0] != 0 {
		c.s.fail(c.e.site, fmt.Errorf("%w: %d in a table of %d rows", ErrIndex, found[1], rows))
	}
}
