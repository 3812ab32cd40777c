package snug_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

func TestAdd(t *testing.T) {
	optest.Run(t, optest.Op{
		Name:      "add",
		F:         two((*snug.Tensor).Add),
		Shapes:    optest.Binary,
		Large:     [][]int{{40, 1000}, {1000}},
		Reference: golden(t, "ops", "add_broadcast"),
	})
	optest.Run(t, optest.Op{
		Name:    "add in place",
		F:       two((*snug.Tensor).AddInPlace),
		Shapes:  [][][]int{{{3, 4}, {3, 4}}, {{2, 3}, {3}}, {{2, 3}, {}}, {{0}, {1}}},
		InPlace: true,
	})
}

func ExampleTensor_Add() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	err = d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
		row := snug.Upload(s, []float32{10, 20, 30}, 3)
		fmt.Println(x.Add(row))
		x.Add(snug.Upload(s, []float32{1, 2}, 2)) // fits no dimension of x
		return nil
	})
	fmt.Println(errors.Is(err, snug.ErrShape))
	// Output:
	// float32[2 3] on cpu mean 23.5 std 9.975 [11 22 33 14 25 36]
	// true
}
