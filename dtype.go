package snug

import "github.com/snug-ml/snug/internal/driver"

// DType is the type of a tensor's elements, chosen at run time.
type DType = driver.DType

// Parameters are Float32 unless nn.SetDType says otherwise. BFloat16 and Float16 are
// storage formats: arithmetic on them is done in float32 and rounded once. Integers and
// Bool serve indexing, comparison and casts.
const (
	Float32  = driver.Float32
	Float64  = driver.Float64
	BFloat16 = driver.BFloat16
	Float16  = driver.Float16
	Int64    = driver.Int64
	Int32    = driver.Int32
	Uint8    = driver.Uint8
	Bool     = driver.Bool
)

// Number is what crosses between Go and tensors. An int is an Int64 there.
type Number interface {
	float32 | float64 | int64 | int32 | uint8 | int | bool
}

func dtypeOf[T Number]() DType {
	var z T
	switch any(z).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int32:
		return Int32
	case uint8:
		return Uint8
	case bool:
		return Bool
	}
	return Int64
}
