package snug_test

import (
	"context"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestCast(t *testing.T) {
	optest.Run(t, optest.Op{
		Name:   "to float32 and back",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].Cast(snug.Float32).Cast(x[0].DType()) },
		Shapes: [][][]int{{{0}}}, // in float64 a difference does not survive the rounding
		Large:  [][]int{{40, 1000}},
	})
	optest.Run(t, optest.Op{Name: "to float64", F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].Cast(snug.Float64) }, Shapes: optest.Unary})
}

func TestCastValues(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float64{-1.75, 0, 0.999, 1, 200.5, 65537}, 6)
		for _, c := range []struct {
			to   snug.DType
			want []float64
		}{
			{snug.Float32, []float64{-1.75, 0, float64(float32(0.999)), 1, 200.5, 65537}},
			{snug.BFloat16, []float64{-1.75, 0, 1, 1, 200, 65536}},
			{snug.Int64, []float64{-1, 0, 0, 1, 200, 65537}},
			{snug.Int32, []float64{-1, 0, 0, 1, 200, 65537}},
			{snug.Bool, []float64{1, 0, 1, 1, 1, 1}},
		} {
			got, err := snug.Download[float64](x.Cast(c.to))
			if err != nil {
				return err
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("as %s: %v, want %v", c.to, got, c.want)
			}
		}
		big := snug.Upload(s, []int64{1<<53 + 1, -5}, 2)
		if got, err := snug.Download[int64](big.Cast(snug.Int64)); err != nil || got[0] != 1<<53+1 {
			t.Error(got, err)
		}
		if got, err := snug.Download[uint8](big.Cast(snug.Bool)); err != nil || got[1] != 1 {
			t.Error(got, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
