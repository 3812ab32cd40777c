// Package interop passes values between Snug and gorgonia.org/tensor.
//
// A dense tensor is copied on its way, so that both sides may go on changing theirs.
// Types that both sides have cross: float32, float64, int64, int32, uint8, bool; int
// comes in as Int64. The 16-bit floats go out as float32. Transposed, sliced and
// column-major dense tensors come in row-major; masked ones are refused, since Snug has
// no masks.
package interop

import (
	"fmt"
	"slices"

	"gorgonia.org/tensor"

	"github.com/snug-ml/snug"
)

// FromDense uploads d into the scope, which frees the result. A failure is the scope's.
func FromDense(s *snug.Scope, d *tensor.Dense) *snug.Tensor {
	d, err := plain(d)
	if err != nil {
		s.Fail("from dense", err)
		return snug.Zeros(s, snug.Float32, 0)
	}
	shape := slices.Clone([]int(d.Shape()))
	switch data := d.Data().(type) {
	case []float32:
		return snug.Upload(s, data, shape...)
	case []float64:
		return snug.Upload(s, data, shape...)
	case []int64:
		return snug.Upload(s, data, shape...)
	case []int32:
		return snug.Upload(s, data, shape...)
	case []int:
		return snug.Upload(s, data, shape...)
	case []uint8:
		return snug.Upload(s, data, shape...)
	case []bool:
		return snug.Upload(s, data, shape...)
	case float32: // a scalar is no slice
		return snug.Upload(s, []float32{data}, shape...)
	case float64:
		return snug.Upload(s, []float64{data}, shape...)
	case int64:
		return snug.Upload(s, []int64{data}, shape...)
	case int32:
		return snug.Upload(s, []int32{data}, shape...)
	case int:
		return snug.Upload(s, []int{data}, shape...)
	case uint8:
		return snug.Upload(s, []uint8{data}, shape...)
	case bool:
		return snug.Upload(s, []bool{data}, shape...)
	}
	s.Fail("from dense", fmt.Errorf("%w: a dense tensor of %v", snug.ErrDType, d.Dtype()))
	return snug.Zeros(s, snug.Float32, shape...)
}

// ToDense waits and copies t out; nil on failure.
func ToDense(t *snug.Tensor) (*tensor.Dense, error) {
	switch t.DType() {
	case snug.Float64:
		return dense[float64](t)
	case snug.Int64:
		return dense[int64](t)
	case snug.Int32:
		return dense[int32](t)
	case snug.Uint8:
		return dense[uint8](t)
	case snug.Bool:
		return dense[bool](t)
	}
	return dense[float32](t)
}

func dense[T snug.Number](t *snug.Tensor) (*tensor.Dense, error) {
	v, err := snug.Download[T](t)
	if err != nil {
		return nil, err
	}
	if t.Dims() == 0 {
		return tensor.New(tensor.FromScalar(v[0])), nil
	}
	return tensor.New(tensor.WithShape(t.Shape()...), tensor.WithBacking(v)), nil
}

// SetParam gives a parameter or buffer d's values, which are converted to its type.
func SetParam(p *snug.Param, d *tensor.Dense) error {
	d, err := plain(d)
	if err != nil {
		return err
	}
	if !slices.Equal(p.Shape(), []int(d.Shape())) {
		return fmt.Errorf("set %s: %w: %v wanted, got a dense %v", p.Name(), snug.ErrShape, p.Shape(), d.Shape())
	}
	switch data := d.Data().(type) {
	case []float32:
		return snug.SetParam(p, data)
	case []float64:
		return snug.SetParam(p, data)
	case float32:
		return snug.SetParam(p, []float32{data})
	case float64:
		return snug.SetParam(p, []float64{data})
	}
	return fmt.Errorf("set %s: %w: a dense tensor of %v", p.Name(), snug.ErrDType, d.Dtype())
}

// GetParam waits and copies a parameter's or buffer's value out.
func GetParam(p *snug.Param) (d *tensor.Dense, err error) {
	if p.DType() == snug.Float64 {
		return get[float64](p)
	}
	return get[float32](p)
}

func get[T snug.Number](p *snug.Param) (*tensor.Dense, error) {
	v, err := snug.GetParam[T](p)
	if err != nil {
		return nil, err
	}
	if len(p.Shape()) == 0 {
		return tensor.New(tensor.FromScalar(v[0])), nil
	}
	return tensor.New(tensor.WithShape(p.Shape()...), tensor.WithBacking(v)), nil
}

// plain is d row-major and without gaps.
func plain(d *tensor.Dense) (*tensor.Dense, error) {
	if d == nil {
		return nil, fmt.Errorf("a dense tensor wanted, got nil")
	}
	if d.IsMasked() {
		return nil, fmt.Errorf("a dense tensor without a mask wanted: fill the masked values first")
	}
	if d.DataOrder().IsColMajor() || d.RequiresIterator() || !d.DataOrder().IsContiguous() || !d.IsNativelyAccessible() {
		m, err := rowMajor(d)
		if err != nil {
			return nil, fmt.Errorf("dense tensor %v: %w", d.Shape(), err)
		}
		return m, nil
	}
	return d, nil
}

// rowMajor copies the elements in the order of their indices.
func rowMajor(d *tensor.Dense) (*tensor.Dense, error) {
	out := tensor.New(tensor.Of(d.Dtype()), tensor.WithShape(d.Shape()...))
	at := make([]int, d.Dims())
	for i := range d.Shape().TotalSize() {
		v, err := d.At(at...)
		if err != nil {
			return nil, err
		}
		out.Set(i, v)
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < d.Shape()[k] {
				break
			}
			at[k] = 0
		}
	}
	return out, nil
}
