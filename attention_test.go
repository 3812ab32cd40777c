package snug_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestAttention(t *testing.T) {
	attend := func(causal bool) func(x ...*snug.Tensor) *snug.Tensor {
		return func(x ...*snug.Tensor) *snug.Tensor { return snug.Attention(x[0], x[1], x[2], causal) }
	}
	same := func(shape ...int) [][]int { return [][]int{shape, shape, shape} }
	shapes := [][][]int{same(2, 1, 3, 2), same(1, 2, 5, 3), same(1, 1, 1, 1), same(1, 1, 70, 2), same(0, 2, 3, 2), same(1, 2, 0, 2), same(1, 1, 2, 0)}
	optest.Run(t, optest.Op{
		Name: "all", F: attend(false), Shapes: append(shapes, [][]int{{1, 2, 3, 2}, {1, 2, 5, 2}, {1, 2, 5, 2}}),
		Large: same(2, 3, 100, 17), Reference: golden(t, "layers", "attention"),
	})
	optest.Run(t, optest.Op{Name: "causal", F: attend(true), Shapes: shapes, Large: same(2, 3, 150, 8), Reference: golden(t, "layers", "attention_causal")})
}

func TestSelfAttention(t *testing.T) {
	optest.Run(t, optest.Op{
		Name:   "self-attention",
		F:      one(func(x *snug.Tensor) *snug.Tensor { return x.SelfAttention(2, true) }),
		Shapes: [][][]int{{{2, 3, 12}}, {{1, 1, 6}}, {{1, 70, 6}}, {{0, 2, 6}}, {{2, 0, 6}}, {{1, 2, 0}}},
		Large:  [][]int{{2, 100, 96}},
	})
	// It is Attention of its parts.
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Infer(t.Context(), func(s *snug.Scope) error {
		x := snug.RandNormal(s, snug.Float32, 2, 7, 3*8)
		var p [3]*snug.Tensor
		for i := range p {
			p[i] = x.Narrow(2, 8*i, 8).Reshape(2, 7, 2, 4).Permute(0, 2, 1, 3)
		}
		want := snug.Attention(p[0], p[1], p[2], true).Permute(0, 2, 1, 3).Reshape(2, 7, 8)
		a, err := snug.Download[float32](x.SelfAttention(2, true))
		if err != nil {
			return err
		}
		b, err := snug.Download[float32](want)
		for i := range b {
			if a[i] != b[i] {
				t.Fatalf("element %d: %v, by parts %v", i, a[i], b[i])
			}
		}
		return err
	}, snug.Random(snug.NewRand(1)))
	if err != nil {
		t.Error(err)
	}
	for _, shape := range [][]int{{2, 3, 9}, {3, 12}} {
		wantError(t, d.Infer(t.Context(), func(s *snug.Scope) error {
			snug.Zeros(s, snug.Float32, shape...).SelfAttention(2, true)
			return nil
		}), snug.ErrShape)
	}
}

// The first query sees the first key alone, the second one both.
func ExampleAttention() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		q := snug.Zeros(s, snug.Float32, 1, 1, 2, 1)
		v := snug.Upload(s, []float32{2, 4}, 1, 1, 2, 1)
		fmt.Println(snug.Attention(q, q, v, true))
		return nil
	})
	// Output:
	// float32[1 1 2 1] on cpu mean 2.5 std 0.7071 [2 3]

}

// Neither pass holds the scores of a whole head: here those would be 16 MiB.
func TestAttentionMemory(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Train(t.Context(), func(s *snug.Scope) error {
		return snug.Full(s, 1, snug.Float32, 1, 2048, 2*3*8).Track().SelfAttention(2, true).Sum().Backward()
	})
	if err != nil {
		t.Fatal(err)
	}
	if peak := d.Memory().Stats().Peak.Allocated; peak > 8<<20 {
		t.Errorf("%d bytes at once", peak)
	}
}
