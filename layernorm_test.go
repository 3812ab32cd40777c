package snug_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestLayerNorm(t *testing.T) {
	optest.Run(t, optest.Op{
		Name: "layer norm",
		F:    func(x ...*snug.Tensor) *snug.Tensor { return x[0].LayerNorm(x[1], x[2], 1e-5) },
		Shapes: [][][]int{
			{{3, 4}, {4}, {4}}, {{7}, {7}, {7}}, {{2, 3, 4}, {3, 4}, {3, 4}}, {{2, 600}, {600}, {600}}, {{3, 1}, {1}, {1}},
			{{0, 3}, {3}, {3}}, {{3, 0}, {0}, {0}},
		},
		Large:     [][]int{{7, 30, 300}, {300}, {300}},
		Reference: golden(t, "layers", "layernorm"),
	})
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	wantError(t, d.Infer(t.Context(), func(s *snug.Scope) error {
		w := snug.Zeros(s, snug.Float32, 4)
		snug.Zeros(s, snug.Float32, 4, 3).LayerNorm(w, w, 1e-5)
		return nil
	}), snug.ErrShape)
}

// Each row is normalized by its own mean and variance.
func ExampleTensor_LayerNorm() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 3, 10, 30}, 2, 2)
		one, zero := snug.Full(s, 1, snug.Float32, 2), snug.Zeros(s, snug.Float32, 2)
		fmt.Println(x.LayerNorm(one, zero, 0))
		return nil
	})
	// Output:
	// float32[2 2] on cpu mean 0 std 1.155 [-1 1 -1 1]

}
