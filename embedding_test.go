package snug_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestEmbedding(t *testing.T) {
	table := func(padding int) func(x ...*snug.Tensor) *snug.Tensor {
		return func(x ...*snug.Tensor) *snug.Tensor { return snug.Embedding(x[1], x[0], padding) }
	}
	five := []optest.Input{optest.Below(5)}
	optest.Run(t, optest.Op{
		Name: "embedding", F: table(-1), Inputs: []optest.Input{optest.Below(5)},
		Shapes: [][][]int{{{3, 6}, {5, 4}}, {{7}, {5, 1}}, {{}, {5, 3}}, {{0}, {5, 2}}, {{3}, {5, 0}}},
		Large:  [][]int{{200}, {5, 300}},
	})
	optest.Run(t, optest.Op{Name: "repeated", F: table(-1), Inputs: five, Reference: golden(t, "layers", "embedding")})
	optest.Run(t, optest.Op{Name: "padding", F: table(2), Inputs: five, Reference: golden(t, "layers", "embedding_padding_idx")})

	int32s := []optest.Input{{DType: snug.Int32, Draw: optest.Below(5).Draw}}
	optest.Run(t, optest.Op{Name: "int32", F: table(-1), Inputs: int32s, Shapes: [][][]int{{{3, 6}, {5, 4}}}})
}

// An index without a row fails the scope and says which.
func TestEmbeddingOutside(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, index := range [][]int{{0, 5, 2}, {4, -1}, slices.Repeat([]int{7}, 3)} {
		err := d.Infer(t.Context(), func(s *snug.Scope) error {
			snug.Embedding(snug.Zeros(s, snug.Float32, 5, 2), snug.Upload(s, index, len(index)), -1)
			return nil
		})
		wantError(t, err, snug.ErrIndex)
		if err != nil && !strings.Contains(err.Error(), "in a table of 5 rows") {
			t.Error(err)
		}
	}
	wantError(t, d.Infer(t.Context(), func(s *snug.Scope) error {
		snug.Embedding(snug.Zeros(s, snug.Float32, 5, 2), snug.Zeros(s, snug.Float32, 3), -1)
		return nil
	}), snug.ErrDType)
}

// Indices name rows of a table.
func ExampleEmbedding() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		table := snug.Upload(s, []float32{0, 1, 10, 11, 20, 21}, 3, 2)
		fmt.Println(snug.Embedding(table, snug.Upload(s, []int{2, 0}, 2), -1))
		return nil
	})
	// Output:
	// float32[2 2] on cpu mean 10.5 std 11.56 [20 21 0 1]

}
