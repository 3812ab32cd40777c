package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

// typed is the array's memory as T, if that is its type.
func typed[T number](a *driver.Array) ([]T, bool) {
	var z T
	var is driver.DType
	switch any(z).(type) {
	case float32:
		is = driver.Float32
	case float64:
		is = driver.Float64
	default:
		is = driver.Int64
	}
	if a.Type != is {
		return nil, false
	}
	return driver.Of[T](a), true
}

// load reads runs of an array of any type as T; store writes them, rounding to the
// nearest. What is not 0 is true.
func load[T number](a *driver.Array) func(dst []T, off, stride int) {
	switch a.Type {
	case driver.Float32:
		return loadFrom[T](driver.Of[float32](a))
	case driver.Float64:
		return loadFrom[T](driver.Of[float64](a))
	case driver.Int64:
		return loadFrom[T](driver.Of[int64](a))
	case driver.Int32:
		return loadFrom[T](driver.Of[int32](a))
	case driver.BFloat16:
		return loadHalf[T](driver.Of[driver.B16](a))
	case driver.Float16:
		return loadHalf[T](driver.Of[driver.F16](a))
	}
	return loadFrom[T](driver.Of[uint8](a)) // Uint8 and Bool
}

func loadFrom[T number, E float32 | float64 | int64 | int32 | uint8](v []E) func(dst []T, off, stride int) {
	return func(dst []T, off, stride int) {
		switch {
		case len(dst) == 0:
		case stride == 0:
			x := T(v[off])
			for i := range dst {
				dst[i] = x
			}
		case stride == 1:
			if same, ok := any(v[off : off+len(dst)]).([]T); ok {
				copy(dst, same)
				return
			}
			for i, x := range v[off : off+len(dst)] {
				dst[i] = T(x)
			}
		default:
			for i := range dst {
				dst[i] = T(v[off+i*stride])
			}
		}
	}
}

func store[T number](a *driver.Array) func(src []T, off, stride int) {
	switch a.Type {
	case driver.Float32:
		return storeTo[T](driver.Of[float32](a))
	case driver.Float64:
		return storeTo[T](driver.Of[float64](a))
	case driver.Int64:
		return storeTo[T](driver.Of[int64](a))
	case driver.Int32:
		return storeTo[T](driver.Of[int32](a))
	case driver.Uint8:
		return storeTo[T](driver.Of[uint8](a))
	case driver.BFloat16:
		return storeHalf[T](driver.Of[driver.B16](a), driver.ToB16)
	case driver.Float16:
		return storeHalf[T](driver.Of[driver.F16](a), driver.ToF16)
	}
	v := driver.Of[bool](a)
	return func(src []T, off, stride int) {
		for i, x := range src {
			v[off+i*stride] = x != 0
		}
	}
}

// half are the 16-bit floats.
type half interface {
	driver.B16 | driver.F16
	Float32() float32
}

func loadHalf[T number, H half](v []H) func(dst []T, off, stride int) {
	return func(dst []T, off, stride int) {
		if d := f32(dst); d != nil && stride == 1 {
			kern.WidenRow(d, v[off:off+len(d)])
			return
		}
		for i := range dst {
			dst[i] = T(v[off+i*stride].Float32())
		}
	}
}

func storeHalf[T number, H half](v []H, round func(float32) H) func(src []T, off, stride int) {
	return func(src []T, off, stride int) {
		if s := f32(src); s != nil && stride == 1 {
			kern.NarrowRow(v[off:off+len(s)], s)
			return
		}
		for i, x := range src {
			v[off+i*stride] = round(float32(x))
		}
	}
}

func store32(a *driver.Array) func(src []float32, off, stride int) { return store[float32](a) }

func storeTo[T number, E float32 | float64 | int64 | int32 | uint8](v []E) func(src []T, off, stride int) {
	return func(src []T, off, stride int) {
		if stride == 1 {
			dst := v[off : off+len(src)]
			if same, ok := any(dst).([]T); ok {
				copy(same, src)
				return
			}
			for i, x := range src {
				dst[i] = E(x)
			}
			return
		}
		for i, x := range src {
			v[off+i*stride] = E(x)
		}
	}
}
