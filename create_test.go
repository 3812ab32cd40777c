package snug_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
)

// An integer type takes the numbers it has and refuses the others, by their value.
func TestFullInRange(t *testing.T) {
	d := open(t)
	for _, c := range []struct {
		v     float64
		dtype snug.DType
		fits  bool
	}{
		{0, snug.Uint8, true}, {255, snug.Uint8, true}, {256, snug.Uint8, false}, {-1, snug.Uint8, false}, {2.5, snug.Uint8, false},
		{math.MinInt32, snug.Int32, true}, {math.MaxInt32, snug.Int32, true}, {math.MaxInt32 + 1, snug.Int32, false},
		{math.MinInt64, snug.Int64, true}, {1 << 63, snug.Int64, false}, {math.NaN(), snug.Int64, false},
		{math.Inf(1), snug.Int64, false}, {math.Inf(1), snug.Float32, true},
	} {
		err := d.Infer(bg, func(s *snug.Scope) error {
			if v, err := snug.Full(s, c.v, c.dtype, 1).Item(); err != nil || v != c.v {
				return fmt.Errorf("%v, %w", v, err)
			}
			return nil
		})
		if (err == nil) != c.fits || err != nil && !errors.Is(err, snug.ErrDType) {
			t.Errorf("%v as %s: %v", c.v, c.dtype, err)
		}
	}
	err := d.Infer(bg, func(s *snug.Scope) error { snug.Full(s, 300, snug.Uint8, 4); return nil })
	if err == nil || !strings.Contains(err.Error(), "300 as uint8, a whole number from 0 to 255 wanted") {
		t.Error(err)
	}
}
