package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

func TestMul(t *testing.T) {
	optest.Run(t, optest.Op{
		Name:      "mul",
		F:         two((*snug.Tensor).Mul),
		Shapes:    optest.Binary,
		Large:     [][]int{{40, 1000}, {40, 1}},
		Reference: golden(t, "ops", "mul_broadcast"),
	})
	optest.Run(t, optest.Op{
		Name:   "square by mul", // one tensor as both inputs
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].Mul(x[0]) },
		Shapes: optest.Unary,
	})
	optest.Run(t, optest.Op{
		Name:    "mul in place",
		F:       two((*snug.Tensor).MulInPlace),
		Shapes:  [][][]int{{{3, 4}, {3, 4}}, {{2, 3}, {3}}, {{2, 3}, {}}, {{0}, {1}}},
		Inputs:  []optest.Input{{}, {Constant: true}},
		InPlace: true,
	})
}
