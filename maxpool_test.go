package snug_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestMaxPool2D(t *testing.T) {
	pool := func(kernel, stride, padding int, ceil bool) func(...*snug.Tensor) *snug.Tensor {
		return one(func(x *snug.Tensor) *snug.Tensor { return x.MaxPool2D(kernel, stride, padding, ceil) })
	}
	shapes := [][][]int{{{2, 3, 5, 6}}, {{1, 4, 3}}, {{0, 2, 4, 4}}, {{2, 0, 4, 4}}}
	optest.Run(t, optest.Op{
		Name: "3 by 2, padded", F: pool(3, 2, 1, false), Shapes: append(shapes, [][]int{{1, 1, 1, 1}}), Large: [][]int{{3, 17, 31, 33}},
		Reference: golden(t, "layers", "maxpool_k3s2p1"),
	})
	optest.Run(t, optest.Op{Name: "2 by 2, ceil", F: pool(2, 2, 0, true), Shapes: shapes, Reference: golden(t, "layers", "maxpool_k2s2_ceil")})
	optest.Run(t, optest.Op{Name: "gaps between windows", F: pool(2, 3, 1, true), Shapes: shapes})
	optest.Run(t, optest.Op{Name: "places above 255", F: pool(17, 2, 3, false), Shapes: [][][]int{{{2, 18, 20}}}})
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, p := range [][3]int{{3, 1, 2}, {0, 1, 0}, {2, 0, 0}, {2, 1, -1}, {7, 1, 0}} {
		if d.Infer(t.Context(), func(s *snug.Scope) error {
			snug.Zeros(s, snug.Float32, 2, 5, 5).MaxPool2D(p[0], p[1], p[2], false)
			return nil
		}) == nil {
			t.Errorf("no error for kernel, stride and padding %v", p)
		}
	}
}

// The largest element of each window.
func ExampleTensor_MaxPool2D() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 2, 3, 4, 5, 6, 7, 8}, 1, 1, 2, 4)
		fmt.Println(x.MaxPool2D(2, 2, 0, false))
		return nil
	})
	// Output:
	// float32[1 1 1 2] on cpu mean 7 std 1.414 [6 8]

}
