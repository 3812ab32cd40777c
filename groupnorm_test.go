package snug_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestGroupNorm(t *testing.T) {
	groups := func(n int) func(x ...*snug.Tensor) *snug.Tensor {
		return func(x ...*snug.Tensor) *snug.Tensor { return x[0].GroupNorm(n, x[1], x[2], 1e-5) }
	}
	optest.Run(t, optest.Op{
		Name:      "group norm",
		F:         groups(3),
		Shapes:    [][][]int{{{2, 6, 2, 3}, {6}, {6}}, {{3, 3, 5}, {3}, {3}}, {{2, 6}, {6}, {6}}, {{0, 3, 2}, {3}, {3}}, {{2, 3, 0}, {3}, {3}}},
		Large:     [][]int{{8, 48, 11, 13}, {48}, {48}},
		Reference: golden(t, "layers", "groupnorm_3"),
	})
	optest.Run(t, optest.Op{Name: "one group", F: groups(1), Shapes: [][][]int{{{2, 3, 4, 5}, {3}, {3}}, {{2, 2, 600}, {2}, {2}}}})
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	wantError(t, d.Infer(t.Context(), func(s *snug.Scope) error {
		w := snug.Zeros(s, snug.Float32, 4)
		snug.Zeros(s, snug.Float32, 2, 4, 3).GroupNorm(3, w, w, 1e-5)
		return nil
	}), snug.ErrShape)
}

// Two groups of two channels, each normalized on its own.
func ExampleTensor_GroupNorm() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 3, 10, 30}, 1, 4)
		one, zero := snug.Full(s, 1, snug.Float32, 4), snug.Zeros(s, snug.Float32, 4)
		fmt.Println(x.GroupNorm(2, one, zero, 0))
		return nil
	})
	// Output:
	// float32[1 4] on cpu mean 0 std 1.155 [-1 1 -1 1]

}
