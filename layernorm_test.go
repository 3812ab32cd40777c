package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
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
	d, err := snug.Open("cpu", snug.Config{})
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
