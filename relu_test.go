package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

func TestReLU(t *testing.T) {
	op := optest.Op{
		Name:      "relu",
		F:         one((*snug.Tensor).ReLU),
		Shapes:    optest.Unary,
		Inputs:    []optest.Input{optest.Away(0)},
		Large:     [][]int{{40, 1000}},
		Reference: golden(t, "ops", "relu"),
	}
	optest.Run(t, op)
	op.Name, op.F, op.InPlace = "relu in place", one((*snug.Tensor).ReLUInPlace), true
	optest.Run(t, op)
}
