package interop_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/interop"
	"github.com/snug-ml/snug/nn"
)

var bg = context.Background()

func open(t testing.TB) *snug.Device {
	t.Helper()
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestThereAndBack(t *testing.T) {
	d := open(t)
	for _, data := range []any{
		[]float32{1, 2, 3, 4, 5, 6}, []float64{1, 2, 3, 4, 5, 6}, []int64{1, -2, 3, 4, 5, 1 << 60},
		[]int32{1, 2, 3, 4, 5, -6}, []uint8{1, 2, 3, 4, 5, 255}, []bool{true, false, true, true, false, false},
	} {
		in := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking(data))
		if err := d.Infer(bg, func(s *snug.Scope) error {
			x := interop.FromDense(s, in)
			out, err := interop.ToDense(x)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(out.Data(), data) || !out.Shape().Eq(in.Shape()) || out.Dtype() != in.Dtype() {
				t.Errorf("%v of %v, want %v", out, out.Dtype(), in)
			}
			if n := d.Memory().Stats().Allocated; n == 0 {
				t.Error("no copy")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// What is transposed, sliced or column-major arrives in the order of its indices.
func TestViews(t *testing.T) {
	d := open(t)
	base := func() *tensor.Dense {
		return tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float32{1, 2, 3, 4, 5, 6}))
	}
	transposed := base()
	if err := transposed.T(); err != nil {
		t.Fatal(err)
	}
	column, err := base().Slice(nil, tensor.S(1))
	if err != nil {
		t.Fatal(err)
	}
	part, err := base().Slice(nil, tensor.S(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	colMajor := tensor.New(tensor.WithShape(2, 3), tensor.AsFortran([]float32{1, 2, 3, 4, 5, 6}))
	for name, c := range map[string]struct {
		d    *tensor.Dense
		want []float32
	}{
		"transposed": {transposed, []float32{1, 4, 2, 5, 3, 6}},
		"column":     {column.(*tensor.Dense), []float32{2, 5}},
		"part":       {part.(*tensor.Dense), []float32{2, 3, 5, 6}},
		"col-major":  {colMajor, []float32{1, 2, 3, 4, 5, 6}},
		"scalar":     {tensor.New(tensor.FromScalar(float32(7))), []float32{7}},
	} {
		if err := d.Infer(bg, func(s *snug.Scope) error {
			got, err := snug.Download[float32](interop.FromDense(s, c.d))
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
			return err
		}); err != nil {
			t.Error(name, err)
		}
	}
	if err := d.Infer(bg, func(s *snug.Scope) error {
		out, err := interop.ToDense(interop.FromDense(s, base()).T())
		if err == nil && !reflect.DeepEqual(out.Data(), []float32{1, 4, 2, 5, 3, 6}) {
			t.Error(out)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	d := open(t)
	masked := tensor.New(tensor.WithShape(2), tensor.WithBacking([]float32{1, 2}, []bool{true, false}))
	for name, bad := range map[string]*tensor.Dense{
		"mask": masked, "string": tensor.New(tensor.WithShape(1), tensor.WithBacking([]string{"a"})), "nil": nil,
	} {
		err := d.Infer(bg, func(s *snug.Scope) error { interop.FromDense(s, bad); return nil })
		if err == nil || !strings.Contains(err.Error(), "from dense: ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := snug.NewParam(snug.Const(1), 2, 3)
	if err := nn.Init(bg, d, &struct{ W *snug.Param }{p}, nil); err != nil {
		t.Fatal(err)
	}
	if err := interop.SetParam(p, tensor.New(tensor.WithShape(3, 2), tensor.Of(tensor.Float32))); !errors.Is(err, snug.ErrShape) {
		t.Error(err)
	}
	d.Infer(bg, func(s *snug.Scope) error {
		p.In(s)
		if err := interop.SetParam(p, tensor.New(tensor.WithShape(2, 3), tensor.Of(tensor.Float32))); !errors.Is(err, snug.ErrInUse) {
			t.Error(err)
		}
		return nil
	})
}

func ExampleSetParam() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	m := &struct{ Weight *snug.Param }{snug.NewParam(snug.Const(0), 2, 2)}
	if err := nn.Init(context.Background(), d, m, nil); err != nil {
		fmt.Println(err)
		return
	}
	in := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float32{1, 2, 3, 4}))
	if err := interop.SetParam(m.Weight, in); err != nil {
		fmt.Println(err)
		return
	}
	out, err := interop.GetParam(m.Weight)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Data())
	// Output: [1 2 3 4]
}
