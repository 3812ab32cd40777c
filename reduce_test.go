package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

var reductions = []struct {
	name string
	dims []int
}{{"all", nil}, {"0", []int{0}}, {"1", []int{1}}, {"0_2", []int{0, 2}}}

func TestSum(t *testing.T) {
	for _, r := range reductions {
		optest.Run(t, optest.Op{
			Name:      r.name,
			F:         func(x ...*snug.Tensor) *snug.Tensor { return x[0].Sum(r.dims...) },
			Shapes:    [][][]int{{{3, 2, 4}}, {{1, 1, 1}}, {{2, 0, 3}}, {{0, 2, 3}}},
			Large:     [][]int{{50, 40, 30}},
			Reference: golden(t, "ops", "sum_"+r.name),
		})
	}
}

func TestMean(t *testing.T) {
	for _, r := range reductions {
		optest.Run(t, optest.Op{
			Name:      r.name,
			F:         func(x ...*snug.Tensor) *snug.Tensor { return x[0].Mean(r.dims...) },
			Shapes:    [][][]int{{{3, 2, 4}}, {{1, 1, 1}}, {{2, 0, 3}}},
			Large:     [][]int{{50, 40, 30}},
			Reference: golden(t, "ops", "mean_"+r.name),
		})
	}
}

func TestVar(t *testing.T) {
	shapes := [][][]int{{{3, 2, 4}}, {{2, 2, 70}}, {{2, 0, 3}}}
	optest.Run(t, optest.Op{
		Name:      "unbiased",
		F:         func(x ...*snug.Tensor) *snug.Tensor { return x[0].Var(true, 2) },
		Shapes:    shapes,
		Large:     [][]int{{50, 40, 30}},
		Reference: golden(t, "ops", "var_dim2_unbiased"),
	})
	optest.Run(t, optest.Op{Name: "of columns", F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].Var(false, 0) }, Shapes: shapes, Large: [][]int{{50, 40, 30}}})
	optest.Run(t, optest.Op{Name: "of all", F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].Var(false) }, Shapes: [][][]int{{{3, 2, 4}}, {{1}}, {{}}}})
	optest.Run(t, optest.Op{
		Name:   "far from 0", // where a difference of squares would be lost
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].Var(true, 1) },
		Shapes: [][][]int{{{3, 20}}},
		Inputs: []optest.Input{optest.Uniform(1000, 1001)},
		Wide:   true,
	})
}
