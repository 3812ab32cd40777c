package models_test

import (
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
)

// Weights can be held in bfloat16 for inference: half the bytes, and nearly the same results.
func TestInferInBFloat16(t *testing.T) {
	for name, v := range subjects {
		var y [2][]float64
		var bytes [2]int64
		for i, dtype := range []snug.DType{snug.Float32, snug.BFloat16} {
			d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 28})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			m := v.model()
			if err := nn.SetDType(m, dtype); err != nil {
				t.Fatal(err)
			}
			if err := nn.Init(bg, d, m, snug.NewRand(3)); err != nil {
				t.Fatal(err)
			}
			for _, p := range nn.Params(m) {
				if !p.IsBuffer() {
					bytes[i] += int64(p.Len() * p.DType().Size())
				}
			}
			if err := d.Infer(bg, func(s *snug.Scope) (err error) {
				x, _ := v.batch(s, 1, 0, samples)
				if x.DType().Float() {
					x = x.Cast(dtype)
				}
				y[i], err = snug.Download[float64](m.Forward(x))
				return err
			}); err != nil {
				t.Fatal(name, err)
			}
			if n := d.Memory().Stats().AtPeak[memory.Casts]; n != 0 {
				t.Errorf("%s: %d bytes of casts", name, n)
			}
		}
		if bytes[1]*2 != bytes[0] {
			t.Errorf("%s: %d bytes of parameters, %d in float32", name, bytes[1], bytes[0])
		}
		if d := distance(y[1], y[0]) / norm(y[0]); !(d <= 0.05) || d == 0 {
			t.Errorf("%s: results differ by %g", name, d)
		}
	}
}
