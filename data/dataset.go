package data

import (
	"fmt"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
)

// Dataset is what a Loader reads. Samples are all of one shape and may be read in any
// order and from several goroutines at once.
type Dataset interface {
	Len() int
	Spec() Spec
	// Read writes sample i into x, whose slice of the Spec's type has the length of
	// Shape, and what belongs to it into y, which has the length of Target.
	Read(i int, x Values, y []int64) error
}

// Spec describes a sample.
type Spec struct {
	Shape   []int        // channels, height and width of an image: [1 28 28]
	Target  []int        // of what belongs to it; empty for one label
	Type    driver.DType // snug.Uint8, Float32 or Int64
	Classes int          // labels are 0 … Classes-1; 0: they are not classes
	Names   []string     // of the classes; nil where they have none
}

// Values are elements of one type: one slice, the others are nil.
type Values struct {
	U8  []uint8
	F32 []float32
	I64 []int64
}

// Element are the types that samples have.
type Element interface{ uint8 | float32 | int64 }

func valuesOf[T Element](x []T) (v Values, dtype driver.DType) {
	switch x := any(x).(type) {
	case []uint8:
		return Values{U8: x}, driver.Uint8
	case []float32:
		return Values{F32: x}, driver.Float32
	case []int64:
		return Values{I64: x}, driver.Int64
	}
	return v, dtype
}

func makeValues(dtype driver.DType, n int) Values {
	switch dtype {
	case driver.Uint8:
		return Values{U8: make([]uint8, n)}
	case driver.Float32:
		return Values{F32: make([]float32, n)}
	}
	return Values{I64: make([]int64, n)}
}

func (v Values) slice(from, to int) Values {
	switch {
	case v.U8 != nil:
		return Values{U8: v.U8[from:to:to]}
	case v.F32 != nil:
		return Values{F32: v.F32[from:to:to]}
	}
	return Values{I64: v.I64[from:to:to]}
}

func (v Values) clone() Values {
	return Values{slices.Clone(v.U8), slices.Clone(v.F32), slices.Clone(v.I64)}
}

// copyFrom copies what has v's type.
func (v Values) copyFrom(src Values) {
	copy(v.U8, src.U8)
	copy(v.F32, src.F32)
	copy(v.I64, src.I64)
}

// check refuses what no loader could read.
func (s Spec) check() error {
	for _, d := range slices.Concat(s.Shape, s.Target) {
		if d < 1 {
			return fmt.Errorf("shape %v, target %v: dimensions must be 1 or more", s.Shape, s.Target)
		}
	}
	switch s.Type {
	case driver.Uint8, driver.Float32, driver.Int64:
	default:
		return fmt.Errorf("samples are %v, want uint8, float32 or int64", s.Type)
	}
	if s.Names != nil && len(s.Names) != s.Classes {
		return fmt.Errorf("%d names for %d classes", len(s.Names), s.Classes)
	}
	return nil
}

// checkLabels names the first label that is no class.
func (s Spec) checkLabels(y []int64) (at int, err error) {
	for i, l := range y {
		if s.Classes > 0 && (l < 0 || l >= int64(s.Classes)) {
			return i, fmt.Errorf("label %d, want 0 to %d", l, s.Classes-1)
		}
	}
	return 0, nil
}
