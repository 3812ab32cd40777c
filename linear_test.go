package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

func TestLinear(t *testing.T) {
	optest.Run(t, optest.Op{
		Name:      "linear",
		F:         func(x ...*snug.Tensor) *snug.Tensor { return x[0].Linear(x[1], x[2]) },
		Shapes:    [][][]int{{{3, 4}, {2, 4}, {2}}, {{4}, {2, 4}, {2}}, {{2, 3, 4}, {1, 4}, {1}}, {{0, 3}, {2, 3}, {2}}, {{2, 0}, {3, 0}, {3}}},
		Large:     [][]int{{300, 70}, {130, 70}, {130}},
		Reference: golden(t, "layers", "linear"),
	})
	optest.Run(t, optest.Op{
		Name:   "linear without bias",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].Linear(x[1], nil) },
		Shapes: [][][]int{{{3, 4}, {2, 4}}, {{1, 1}, {1, 1}}},
	})
}
