package snug_test

import (
	"context"
	"math"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestDropout(t *testing.T) {
	optest.Run(t, optest.Op{
		Name:   "dropout",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].Dropout(0.3) },
		Shapes: optest.Unary,
		Large:  [][]int{{40, 1000}},
	})
}

// As many elements as p says are 0, the others are scaled, and evaluation leaves all.
func TestDropoutRate(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	zeros := func(s *snug.Scope) (n int) {
		y, err := snug.Download[float32](snug.Full(s, 1, snug.Float32, 100000).Dropout(0.25))
		if err != nil {
			t.Error(err)
		}
		for _, v := range y {
			switch {
			case v == 0:
				n++
			case v != 1 && !(math.Abs(float64(v)-1/0.75) < 1e-6):
				t.Fatal(v)
			}
		}
		return n
	}
	ctx, r := context.Background(), snug.NewRand(1)
	err = d.Train(ctx, func(s *snug.Scope) error {
		if n := zeros(s); n < 24500 || n > 25500 {
			t.Errorf("%d of 100000 are 0, want about 25000", n)
		}
		return nil
	}, snug.Random(r))
	if err != nil {
		t.Error(err)
	}
	d.Infer(ctx, func(s *snug.Scope) error {
		if n := zeros(s); n != 0 {
			t.Errorf("%d are 0 in evaluation", n)
		}
		return nil
	})
	if err := d.Train(ctx, func(s *snug.Scope) error { snug.Zeros(s, snug.Float32, 3).Dropout(0.5); return nil }); err == nil {
		t.Error("dropout without a random stream")
	}
	if err := d.Train(ctx, func(s *snug.Scope) error { snug.Zeros(s, snug.Float32, 3).Dropout(1); return nil }, snug.Random(r)); err == nil {
		t.Error("dropout of everything")
	}
}
