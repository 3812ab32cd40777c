package nn_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/nn"
)

// running are a batch norm's statistics.
func running(t *testing.T, d *snug.Device, l *nn.BatchNorm) (v []float32) {
	t.Helper()
	err := d.Infer(t.Context(), func(s *snug.Scope) error {
		for _, p := range []*snug.Param{l.RunningMean, l.RunningVar} {
			b, err := snug.Download[float32](p.In(s))
			if err != nil {
				return err
			}
			v = append(v, b...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func newBatchNorm(t *testing.T) (*snug.Device, *nn.BatchNorm) {
	d, l := open(t), nn.NewBatchNorm(2)
	if err := nn.Init(t.Context(), d, l, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	return d, l
}

var batch = []float32{1, 2, 3, 5, 8, 13}

// Statistics move in training and once, whether or not the block runs again; they stay in
// evaluation, in a scope that fails, and where they are frozen.
func TestBatchNormStatistics(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name string
		run  func(d *snug.Device, l *nn.BatchNorm, step func(s *snug.Scope) error) error
		move bool
	}{
		{"training", func(d *snug.Device, l *nn.BatchNorm, step func(s *snug.Scope) error) error {
			return d.Train(t.Context(), step)
		}, true},
		{"evaluation", func(d *snug.Device, l *nn.BatchNorm, step func(s *snug.Scope) error) error {
			return d.Train(t.Context(), step, snug.Eval())
		}, false},
		{"recomputed", func(d *snug.Device, l *nn.BatchNorm, step func(s *snug.Scope) error) error {
			return d.Train(t.Context(), step, checkpoint.Every(1))
		}, true},
		{"frozen", func(d *snug.Device, l *nn.BatchNorm, step func(s *snug.Scope) error) error {
			nn.Freeze(l)
			return d.Train(t.Context(), step)
		}, false},
		{"failed", func(d *snug.Device, l *nn.BatchNorm, step func(s *snug.Scope) error) error {
			err := d.Train(t.Context(), func(s *snug.Scope) error { return errors.Join(step(s), failed) })
			if !errors.Is(err, failed) {
				return fmt.Errorf("error %v", err)
			}
			return nil
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, l := newBatchNorm(t)
			before := running(t, d, l)
			err := c.run(d, l, func(s *snug.Scope) error {
				x := snug.Upload(s, batch, 3, 2).Track()
				return snug.Block(l.Forward, x).Sum().Backward()
			})
			if err != nil {
				t.Fatal(err)
			}
			want := before
			if c.move { // means 4 and 20/3, unbiased variances 13 and 97/3
				want = []float32{0.4, 2.0 / 3, 0.9 + 1.3, 0.9 + 9.7/3}
			}
			for i, v := range running(t, d, l) {
				if diff := v - want[i]; !(-1e-6 <= diff && diff <= 1e-6) {
					t.Errorf("statistics %v, want %v", running(t, d, l), want)
					break
				}
			}
		})
	}
}

// ForwardReLU is Forward and a ReLU, in training and not.
func TestBatchNormReLU(t *testing.T) {
	d, l := newBatchNorm(t)
	for _, o := range [][]snug.Option{nil, {snug.Eval()}} {
		err := d.Train(t.Context(), func(s *snug.Scope) error {
			x := snug.Upload(s, batch, 3, 2)
			one, err := snug.Download[float32](l.Forward(x).ReLU())
			if err != nil {
				return err
			}
			other, err := snug.Download[float32](l.ForwardReLU(x))
			if !slices.Equal(one, other) {
				t.Errorf("%v, fused %v", one, other)
			}
			return err
		}, o...)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestBatchNormOfOneValue(t *testing.T) {
	d, l := newBatchNorm(t)
	step := func(s *snug.Scope) error { l.Forward(snug.Zeros(s, snug.Float32, 1, 2)); return nil }
	err := d.Train(t.Context(), step)
	if !errors.Is(err, snug.ErrShape) || !strings.Contains(err.Error(), "more than one value a channel") {
		t.Error(err)
	}
	if err := d.Infer(t.Context(), step); err != nil {
		t.Error(err)
	}
}
