package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

var floats = map[string]func([]byte) float64{
	"F64":  func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) },
	"F32":  func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) },
	"BF16": func(b []byte) float64 { return float64(driver.B16(binary.LittleEndian.Uint16(b)).Float32()) },
	"F16":  func(b []byte) float64 { return float64(driver.F16(binary.LittleEndian.Uint16(b)).Float32()) },
}

var integers = map[string]func([]byte) int64{
	"BOOL": func(b []byte) int64 { return int64(b[0]) },
	"U8":   func(b []byte) int64 { return int64(b[0]) },
	"I8":   func(b []byte) int64 { return int64(int8(b[0])) },
	"U16":  func(b []byte) int64 { return int64(binary.LittleEndian.Uint16(b)) },
	"I16":  func(b []byte) int64 { return int64(int16(binary.LittleEndian.Uint16(b))) },
	"U32":  func(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) },
	"I32":  func(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) },
	"I64":  func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) },
}

// Float64s reads a tensor of F64, F32, BF16 or F16, all of which a float64 holds exactly.
func (f *File) Float64s(name string) ([]float64, error) { return values(f, name, floats) }

// Int64s reads a tensor of any integer type that an int64 holds, or of BOOL.
func (f *File) Int64s(name string) ([]int64, error) { return values(f, name, integers) }

// Float32s reads a tensor of F32, BF16 or F16; it does not narrow an F64.
func (f *File) Float32s(name string) ([]float32, error) {
	if i, _ := f.Info(name); i.DType == "F64" {
		return nil, fmt.Errorf("%s: tensor %q is F64, which float32 would narrow", f.name, name)
	}
	wide, err := f.Float64s(name)
	if err != nil {
		return nil, err
	}
	v := make([]float32, len(wide))
	for i, x := range wide {
		v[i] = float32(x)
	}
	return v, nil
}

func values[T any](f *File, name string, decode map[string]func([]byte) T) ([]T, error) {
	b, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	dtype := f.at[name].DType
	get, ok := decode[dtype]
	if !ok {
		return nil, fmt.Errorf("%s: tensor %q is %s, want %T", f.name, name, dtype, *new(T))
	}
	size := int(sizes[dtype])
	v := make([]T, len(b)/size)
	for i := range v {
		v[i] = get(b[i*size:])
	}
	return v, nil
}
