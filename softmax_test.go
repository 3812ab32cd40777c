package snug_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

func TestSoftmax(t *testing.T) {
	for _, c := range []struct {
		golden string
		dim    int
		f      func(x *snug.Tensor, dim int) *snug.Tensor
	}{
		{"softmax_dim-1", -1, (*snug.Tensor).Softmax},
		{"softmax_dim1", 1, (*snug.Tensor).Softmax},
		{"softmax_large_logits", 1, (*snug.Tensor).Softmax},
		{"log_softmax_dim-1", -1, (*snug.Tensor).LogSoftmax},
		{"log_softmax_dim1", 1, (*snug.Tensor).LogSoftmax},
	} {
		optest.Run(t, optest.Op{
			Name:      c.golden,
			F:         func(x ...*snug.Tensor) *snug.Tensor { return c.f(x[0], c.dim) },
			Shapes:    [][][]int{{{3, 4}}, {{2, 3, 5}}, {{1, 1}}, {{2, 2, 70}}, {{0, 3}}, {{3, 0}}},
			Large:     [][]int{{9, 50, 90}},
			Reference: golden(t, "ops", c.golden),
		})
	}
}
