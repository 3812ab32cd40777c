package snug_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

func TestAvgPool2D(t *testing.T) {
	pool := func(kernel, stride, padding int, ceil, count bool) func(...*snug.Tensor) *snug.Tensor {
		return one(func(x *snug.Tensor) *snug.Tensor { return x.AvgPool2D(kernel, stride, padding, ceil, count) })
	}
	shapes := [][][]int{{{2, 3, 5, 6}}, {{1, 4, 3}}, {{0, 2, 4, 4}}, {{2, 0, 4, 4}}}
	optest.Run(t, optest.Op{
		Name: "3 by 2, padded", F: pool(3, 2, 1, false, true), Shapes: append(shapes, [][]int{{1, 1, 1, 1}}), Large: [][]int{{3, 17, 31, 33}},
		Reference: golden(t, "layers", "avgpool_k3s2p1"),
	})
	optest.Run(t, optest.Op{Name: "padding not counted", F: pool(3, 2, 1, true, false), Shapes: shapes})
	optest.Run(t, optest.Op{Name: "ceil", F: pool(2, 2, 0, true, true), Shapes: shapes})

	// By hand: of the first row [1 2 3], windows of 2 by 2 with a padding of 1 in a corner
	// see one element, and under ceil the last one ends within the padding.
	ones := optest.Array{Shape: []int{1, 1, 3, 3}, Values: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	for _, c := range []struct {
		name  string
		count bool
		want  []float64
	}{
		{"corner, counted", true, []float64{1.0 / 4, 5.0 / 4, 11.0 / 4, 28.0 / 4}},
		{"corner, not counted", false, []float64{1, 2.5, 5.5, 7}},
	} {
		optest.Run(t, optest.Op{Name: c.name, F: pool(2, 2, 1, true, c.count), Reference: &optest.Reference{
			Inputs: []optest.Array{ones}, Output: optest.Array{Shape: []int{1, 1, 2, 2}, Values: c.want},
		}})
	}
}

func TestAdaptiveAvgPool2D(t *testing.T) {
	pool := func(h, w int) func(...*snug.Tensor) *snug.Tensor {
		return one(func(x *snug.Tensor) *snug.Tensor { return x.AdaptiveAvgPool2D(h, w) })
	}
	shapes := [][][]int{{{2, 3, 5, 6}}, {{1, 2, 3}}, {{0, 2, 4, 4}}}
	optest.Run(t, optest.Op{Name: "whole", F: pool(1, 1), Shapes: shapes, Large: [][]int{{3, 17, 31, 33}}, Reference: golden(t, "layers", "adaptive_avgpool_1")})
	optest.Run(t, optest.Op{Name: "3 by 4", F: pool(3, 4), Shapes: shapes, Reference: golden(t, "layers", "adaptive_avgpool_3x4")})
}

// The mean of each window.
func ExampleTensor_AvgPool2D() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 2, 3, 4, 5, 6, 7, 8}, 1, 1, 2, 4)
		fmt.Println(x.AvgPool2D(2, 2, 0, false, true))
		return nil
	})
	// Output:
	// float32[1 1 1 2] on cpu mean 4.5 std 1.414 [3.5 5.5]

}
