package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

func TestMatMul(t *testing.T) {
	f := two((*snug.Tensor).MatMul)
	for _, shapes := range []string{"5x7__7x3", "4x5x7__4x7x3", "2x3x5x7__7x3", "2x1x5x7__1x3x7x2", "7__7x3", "5x7__7"} {
		optest.Run(t, optest.Op{Name: shapes, F: f, Reference: golden(t, "ops", "matmul_"+shapes)})
	}
	optest.Run(t, optest.Op{
		Name:      "transposed",
		F:         func(x ...*snug.Tensor) *snug.Tensor { return x[0].T().MatMul(x[1].T()) },
		Shapes:    [][][]int{{{3, 2}, {4, 3}}},
		Reference: golden(t, "ops", "transpose_matmul"),
	})
	optest.Run(t, optest.Op{
		Name: "matmul",
		F:    f,
		Shapes: [][][]int{
			{{3, 4}, {4, 2}}, {{2, 3, 4}, {4, 5}}, {{2, 1, 3, 2}, {3, 2, 4}}, {{1, 1}, {1, 1}},
			{{4}, {4}}, {{4}, {4, 3}}, {{2, 4}, {4}}, {{2, 2, 4}, {4}}, {{4}, {2, 4, 3}},
			{{0, 3}, {3, 2}}, {{2, 0}, {0, 3}}, {{2, 3}, {3, 0}}, {{0, 2, 3}, {3, 2}},
		},
		Large: [][]int{{3, 70, 90}, {90, 110}},
	})
}
