package snug_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestMaxAndMin(t *testing.T) {
	shapes := [][][]int{{{3, 4, 2}}, {{1, 5, 1}}, {{2, 3, 70}}, {{0, 2, 3}}, {{2, 3, 0}}, {{0, 0, 3}}}
	large := [][]int{{9, 50, 90}}
	optest.Run(t, optest.Op{
		Name:      "max",
		F:         func(x ...*snug.Tensor) *snug.Tensor { return x[0].Max(1) },
		Shapes:    shapes,
		Large:     large,
		Reference: golden(t, "ops", "max_dim1"),
	})
	optest.Run(t, optest.Op{Name: "min", F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].Min(-2) }, Shapes: shapes, Large: large})
	optest.Run(t, optest.Op{Name: "max of the last", F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].Max(-1) }, Shapes: [][][]int{{{3, 4}}, {{5}}}, Large: large})
	optest.Run(t, optest.Op{Name: "argmax", F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].ArgMax(1) }, Shapes: shapes, Large: large})
}

// The first of equals counts, and NaN wins.
func TestMaxOfEquals(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	nan := float32(math.NaN())
	err = d.Train(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 3, 3, 0, 2, nan, 7, nan, -1, -1, -1, -1}, 3, 4).Track()
		at, err := snug.Download[int](x.ArgMax(1))
		if err != nil {
			return err
		}
		if !slices.Equal(at, []int{1, 1, 0}) {
			t.Errorf("argmax %v, want [1 1 0]", at)
		}
		y := x.Max(1).Keep()
		if err := y.Sum().Backward(); err != nil {
			return err
		}
		grad, err := snug.Download[float32](x.Grad())
		if err != nil {
			return err
		}
		if !slices.Equal(grad, []float32{0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0}) {
			t.Errorf("gradient %v", grad)
		}
		v, err := snug.Download[float32](y)
		if err != nil {
			return err
		}
		if v[0] != 3 || v[1] == v[1] || v[2] != -1 {
			t.Errorf("max %v, want [3 NaN -1]", v)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, shape := range [][]int{{2, 0}, {2}} {
		err := d.Infer(context.Background(), func(s *snug.Scope) error { snug.Zeros(s, snug.Float32, shape...).Max(1); return nil })
		if err == nil {
			t.Errorf("max over dimension 1 of %v", shape)
		}
	}
}
