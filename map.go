package snug

import (
	"fmt"

	"github.com/snug-ml/snug/internal/driver"
)

// Map runs a kernel written in Go on the host: fn fills dst, of the given shape, from its
// inputs, all of them row-major. No gradient passes; make it the forward or backward half
// of an Op for that. A dry run does not call fn. T is the type of all inputs and of the
// result, and not int.
func Map[T Number](s *Scope, name string, shape []int, fn func(dst []T, src ...[]T) error, in ...*Tensor) *Tensor {
	dtype := dtypeOf[T]()
	if _, bad := any(*new(T)).(int); bad {
		s.Fail(name, fmt.Errorf("%w: a kernel over int, int64 wanted", ErrDType))
		return s.blank(dtype, shape)
	}
	if len(in) == 0 {
		return s.create(name, dtype, shape, func(t *Tensor) { mapInto(s, t, fn) })
	}
	operands := make([]Operand, len(in))
	for i, t := range in {
		operands[i] = t
	}
	return Apply(&Op{
		Name:  name,
		Shape: func(...[]int) ([]int, error) { return shape, checkShape(shape) },
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			out := c.New(dtype, shape)
			for i, t := range in {
				if t.dtype != dtype {
					s.fail(s.now, fmt.Errorf("%w: input %d is %s, want %s", ErrDType, i, t.dtype, dtype))
				}
				if !t.contiguous() {
					in[i] = c.Run("copy", t.shape, nil, t)
				}
			}
			mapInto(s, out, fn, in...)
			return out
		},
	}, operands...)
}

func mapInto[T Number](s *Scope, out *Tensor, fn func(dst []T, src ...[]T) error, in ...*Tensor) {
	if s.err != nil || s.skip || !s.dev.values {
		return
	}
	src := make([][]T, len(in))
	for i, t := range in {
		a, err := t.hostArray()
		if err != nil {
			s.fail(s.now, err)
			return
		}
		src[i] = elements[T](&a)[:t.Len()]
	}
	a := out.array()
	if s.dev.card != nil {
		a.Data = make([]byte, out.Len()*out.dtype.Size())
	}
	dst := elements[T](&a)[:out.Len()]
	if s.fail(s.now, fn(dst, src...)); s.err == nil && s.dev.card != nil {
		s.fail(s.now, s.dev.card.Upload(out.array().Data, a.Data))
	}
}

// elements is an array's memory as Go values.
func elements[T Number](a *driver.Array) []T {
	var v any
	switch a.Type {
	case Float32:
		v = driver.Of[float32](a)
	case Float64:
		v = driver.Of[float64](a)
	case Int64:
		v = driver.Of[int64](a)
	case Int32:
		v = driver.Of[int32](a)
	case Uint8:
		v = driver.Of[uint8](a)
	case Bool:
		v = driver.Of[bool](a)
	}
	return v.([]T)
}
