package snug

import (
	"fmt"
	"math"
	"slices"
)

// Zeros makes a tensor of zeros.
func Zeros(s *Scope, dtype DType, shape ...int) *Tensor { return Full(s, 0, dtype, shape...) }

// Full makes a tensor of equal elements, of a value that the type has.
func Full(s *Scope, value float64, dtype DType, shape ...int) *Tensor {
	return s.create("full", dtype, shape, func(t *Tensor) {
		s.fail(s.now, inRange(value, dtype))
		s.kernel("fill", []float64{value}, [3]uint64{}, []*Tensor{t})
	})
}

// RandUniform draws from [0,1), from the scope's random stream.
func RandUniform(s *Scope, dtype DType, shape ...int) *Tensor {
	return s.random("uniform", dtype, shape)
}

// RandNormal draws with mean 0 and variance 1, from the scope's random stream.
func RandNormal(s *Scope, dtype DType, shape ...int) *Tensor {
	return s.random("normal", dtype, shape)
}

func (s *Scope) random(kernel string, dtype DType, shape []int) *Tensor {
	return s.create(kernel, dtype, shape, func(t *Tensor) {
		if key := s.draw(kernel); s.err == nil {
			s.kernel(kernel, []float64{1, 0}, key, []*Tensor{t})
		}
	})
}

// create makes a tensor without inputs; it counts as an operation of recomputed blocks.
func (s *Scope) create(op string, dtype DType, shape []int, fill func(*Tensor)) *Tensor {
	shape = slices.Clone(shape)
	if !s.ok(op) {
		return s.blank(dtype, shape)
	}
	defer s.end(s.begin())
	s.now = s.site(op)
	if err := checkShape(shape); err != nil {
		s.fail(s.now, err)
	}
	t := s.result(dtype, shape)
	fill(t)
	return t
}

// inRange refuses what an integer type would make another number of.
func inRange(v float64, dtype DType) error {
	from, to, bound := 0.0, 0.0, ""
	switch dtype {
	case Uint8:
		to, bound = 1<<8, "0 to 255"
	case Int32:
		from, to, bound = -1<<31, 1<<31, "-2³¹ to 2³¹-1"
	case Int64:
		from, to, bound = -1<<63, 1<<63, "-2⁶³ to 2⁶³-1"
	default:
		return nil
	}
	if from <= v && v < to && v == math.Trunc(v) {
		return nil
	}
	return fmt.Errorf("%w: %v as %s, a whole number from %s wanted", ErrDType, v, dtype, bound)
}
