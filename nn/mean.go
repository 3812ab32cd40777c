package nn

import (
	"fmt"
	"math"

	"github.com/snug-ml/snug"
)

// Mean is a running mean that stays on the device, so that nothing waits for it: of losses,
// of accuracies. It is a module: Init places it and Close frees it.
type Mean struct {
	Sum *snug.Param // a buffer [2] of float64: the weighted sum, and the weights'
}

func NewMean() *Mean {
	m := &Mean{snug.NewBuffer(snug.Const(0), 2)}
	m.Sum.SetDType(snug.Float64) // it fails on a device only
	return m
}

// Add counts t, one number that is a mean over weight samples, once its scope has
// succeeded. It keeps no graph; in a recomputed block it takes effect once.
func (m *Mean) Add(t *snug.Tensor, weight float64) {
	if weight == 0 { // nothing was meant, not even a NaN
		return
	}
	m.Sum.Accumulate(snug.Apply(&snug.Op{
		Name: "mean",
		Shape: func(in ...[]int) ([]int, error) {
			if n := numel(in[0]); n != 1 {
				return []int{2}, fmt.Errorf("%w: one number wanted, got %v", snug.ErrShape, in[0])
			}
			return []int{2}, nil
		},
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			return c.RunAs("weighted", snug.Float64, []int{2}, []float64{weight}, in...)
		},
	}, t))
}

// Take waits, returns the mean of what was added since the last Take, and starts anew. It
// is NaN where nothing was, and on failure: with snug.ErrInUse in a scope that adds.
func (m *Mean) Take() (float64, error) {
	v, err := snug.GetParam[float64](m.Sum)
	if err == nil {
		err = snug.SetParam(m.Sum, []float64{0, 0})
	}
	if err != nil {
		return math.NaN(), fmt.Errorf("mean: %w", err)
	}
	return v[0] / v[1], nil
}

func numel(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
