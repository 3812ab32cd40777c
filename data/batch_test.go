package data

import (
	"math"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/testdevice"
)

// Bytes, floats and integers arrive as the documentation says, normalized by channel.
func TestIn(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	shape, target := []int{2, 2, 1, 2}, []int{2}
	y := []int64{7, 8}
	bytes := Values{U8: []uint8{0, 51, 255, 102, 0, 0, 0, 255}}
	floats := Values{F32: []float32{0, 1, 2, 3, 4, 5, 6, 7}}
	mean, std := []float32{0.2, 1}, []float32{0.5, 2}
	for _, c := range []struct {
		name string
		b    Batch
		want []float64
	}{
		{"bytes", Batch{X: bytes}, []float64{0, 0.2, 1, 0.4, 0, 0, 0, 1}},
		{"bytes, normalized", Batch{X: bytes, Mean: mean, Std: std}, []float64{-0.4, 0, 0, -0.3, -0.4, -0.4, -0.5, 0}},
		{"floats", Batch{X: floats}, []float64{0, 1, 2, 3, 4, 5, 6, 7}},
		{"floats, normalized", Batch{X: floats, Mean: mean, Std: std}, []float64{-0.4, 1.6, 0.5, 1, 7.6, 9.6, 2.5, 3}},
	} {
		c.b.Y, c.b.Shape, c.b.Target = y, shape, target
		err := d.Infer(t.Context(), func(s *snug.Scope) error {
			x, labels := c.b.In(s)
			got, err := snug.Download[float32](x)
			if err != nil {
				return err
			}
			for i, w := range c.want {
				if !(math.Abs(float64(got[i])-w) <= 1e-6) {
					t.Errorf("%s: %v, want %v", c.name, got, c.want)
					break
				}
			}
			if l, err := snug.Download[int64](labels); err != nil || !slices.Equal(l, y) || !slices.Equal(x.Shape(), shape) {
				t.Errorf("%s: shape %v, labels %v, %v", c.name, x.Shape(), l, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	tokens := newBatch(Spec{Shape: []int{3}, Target: []int{3}, Type: driver.Int64}, 2)
	err = d.Infer(t.Context(), func(s *snug.Scope) error {
		x, y := tokens.In(s)
		if x.DType() != snug.Int64 || !slices.Equal(y.Shape(), []int{2, 3}) {
			t.Errorf("tokens are %v, their targets of shape %v", x.DType(), y.Shape())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
