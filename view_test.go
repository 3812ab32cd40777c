package snug_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

func TestViews(t *testing.T) {
	for _, c := range []struct {
		name, golden string
		f            func(x *snug.Tensor) *snug.Tensor
		shapes       [][][]int
	}{
		{"reshape", "", func(x *snug.Tensor) *snug.Tensor { return x.Reshape(-1, 2) }, [][][]int{{{3, 4}}, {{2}}, {{2, 0}}}},
		{"flatten", "", func(x *snug.Tensor) *snug.Tensor { return x.Flatten(1) }, [][][]int{{{2, 3, 4}}, {{2, 1}}, {{0, 3}}, {{2}}}},
		{"permute", "", func(x *snug.Tensor) *snug.Tensor { return x.Permute(2, 0, 1) }, [][][]int{{{2, 3, 4}}, {{1, 0, 2}}}},
		{"permute and reshape", "permute_reshape", func(x *snug.Tensor) *snug.Tensor { return x.Permute(2, 0, 1).Reshape(x.Dim(2), -1) }, [][][]int{{{2, 3, 4}}}},
		{"transpose", "", func(x *snug.Tensor) *snug.Tensor { return x.Transpose(0, -1) }, [][][]int{{{2, 3, 4}}, {{3}}}},
		{"slice", "slice_step", func(x *snug.Tensor) *snug.Tensor {
			return x.Slice(snug.Range{From: 1}, snug.Range{Step: 2}, snug.Range{From: 2, To: 6})
		}, [][][]int{{{3, 5, 7}}, {{1, 2, 6}}}},
		{"slice from the end", "", func(x *snug.Tensor) *snug.Tensor { return x.Slice(snug.All, snug.Range{From: -2, To: -1}) }, [][][]int{{{2, 3}}, {{0, 2}}}},
		{"narrow", "", func(x *snug.Tensor) *snug.Tensor { return x.Narrow(-1, 1, 2) }, [][][]int{{{2, 4}}, {{3}}, {{0, 3}}}},
		{"narrow to nothing", "", func(x *snug.Tensor) *snug.Tensor { return x.Narrow(0, x.Dim(0), 0) }, [][][]int{{{2, 4}}, {{0}}}},
		{"expand", "", func(x *snug.Tensor) *snug.Tensor { return x.Expand(2, 3, 4) }, [][][]int{{{3, 1}}, {{}}, {{2, 3, 4}}}},
		{"expand and sum", "expand_sum", func(x *snug.Tensor) *snug.Tensor { return x.Expand(4, 3, 5).Sum(0) }, [][][]int{{{1, 3, 5}}}},
		{"contiguous", "", func(x *snug.Tensor) *snug.Tensor { return x.T().Contiguous() }, [][][]int{{{2, 3}}, {{1, 0}}}},
	} {
		op := optest.Op{Name: c.name, F: one(c.f), Shapes: c.shapes}
		if c.golden != "" {
			op.Reference = golden(t, "ops", c.golden)
		}
		optest.Run(t, op)
	}
}

// A view shares memory with what it is a view of: writing one shows in the other.
func ExampleTensor_Slice() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{-1, -2, -3, -4, -5, -6}, 2, 3)
		column := x.Slice(snug.All, snug.Range{From: 1, To: 2})
		column.ReLUInPlace()
		fmt.Println(x)
		return nil
	})
	// Output:
	// float32[2 3] on cpu mean -2.333 std 2.422 [-1 0 -3 -4 0 -6]
}
