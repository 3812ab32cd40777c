package snug_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/offload"
)

func TestAutocastTypes(t *testing.T) {
	d := open(t)
	w, b := snug.NewParam(snug.Uniform(1), 4, 4), snug.NewParam(snug.Uniform(1), 4)
	place(t, d, w, b)
	for _, low := range []snug.DType{snug.BFloat16, snug.Float16} {
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := ramp(s, 3, 4)
			h := x.MatMul(w)
			for what, c := range map[string]struct {
				got  *snug.Tensor
				want snug.DType
			}{
				"matmul": {h, low}, "linear": {x.Linear(w, b), low}, "relu": {h.ReLU(), low},
				"low and float32": {h.Add(x), snug.Float32}, "in place": {h.Mul(h).AddInPlace(x), low},
				"softmax": {h.Softmax(-1), snug.Float32}, "mean": {h.Mean(), snug.Float32}, "exp": {h.Exp(), snug.Float32},
				"layer norm": {h.LayerNorm(b, b, 1e-5), low}, "layer norm of float32": {x.LayerNorm(b, b, 1e-5), snug.Float32},
				"cat": {snug.Cat(0, h, x), snug.Float32}, "transposed": {x.MatMul(w.In(s).T()), low},
				"float64":      {x.Cast(snug.Float64).MatMul(w.In(s).Cast(snug.Float64)), snug.Float64},
				"switched off": {snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.MatMul(w) }, x, amp.Autocast(snug.Float32)), snug.Float32},
			} {
				if c.got.DType() != c.want {
					t.Errorf("%s: %s, want %s", what, c.got.DType(), c.want)
				}
			}
			// w and its transpose are one cast, b is another one.
			if n := d.Memory().Stats().Categories[memory.Casts]; n != 2*512 {
				t.Errorf("%d bytes of casts", n)
			}
			loss := h.Add(x).Mean()
			if err := loss.Backward(); err != nil {
				return err
			}
			if g := w.Grad(s); g.DType() != snug.Float32 {
				t.Errorf("a gradient of %s", g.DType())
			}
			return nil
		}, amp.Autocast(low)); err != nil {
			t.Fatal(err)
		}
		w.Zero()
	}
	err := d.Train(bg, func(*snug.Scope) error { return nil }, amp.Autocast(snug.Int32))
	if err == nil || !strings.Contains(err.Error(), "autocast to int32: bfloat16, float16, or float32 for none wanted") {
		t.Error(err)
	}
}

// The gradients under autocast are near those without: by the rounding of the low type.
func TestAutocastGradients(t *testing.T) {
	train := func(o ...snug.Option) (loss float64, g []float64) {
		d := open(t)
		a, b := snug.NewParam(snug.Uniform(0.3), 24, 32), snug.NewParam(snug.Uniform(0.3), 8, 32)
		place(t, d, a, b)
		if err := d.Train(bg, func(s *snug.Scope) error {
			h := ramp(s, 16, 24).MatMul(a).Tanh()
			y := h.Linear(b, nil).Add(h.MatMul(b.In(s).T())) // one parameter twice, once as a view
			l := y.Sub(ramp(s, 16, 8)).Square().Mean()
			if err := l.Backward(snug.Weight(1 << 10)); err != nil { // else float16 loses the small ones
				return err
			}
			loss, _ = l.Item()
			for _, p := range []*snug.Param{a, b} {
				v, err := snug.Download[float64](p.Grad(s))
				if err != nil {
					return err
				}
				g = append(g, v...)
			}
			return nil
		}, o...); err != nil {
			t.Fatal(err)
		}
		return loss, g
	}
	loss, want := train()
	for low, tol := range map[snug.DType]float64{snug.BFloat16: 1e-2, snug.Float16: 1.5e-3} {
		l, g := train(amp.Autocast(low))
		var diff, norm float64
		for i := range g {
			diff += (g[i] - want[i]) * (g[i] - want[i])
			norm += want[i] * want[i]
		}
		if !(math.Abs(l-loss) <= tol*loss) || !(math.Sqrt(diff) <= tol*math.Sqrt(norm)) {
			t.Errorf("%s: loss %g, want %g; gradients differ by %g of %g", low, l, loss, math.Sqrt(diff), math.Sqrt(norm))
		}
		if slices.Equal(g, want) {
			t.Errorf("%s: nothing was cast", low)
		}
	}
}

// Under autocast, too, the other savers change no bit, and a dry run predicts all.
func TestAutocastWithSavers(t *testing.T) {
	low := amp.Autocast(snug.BFloat16)
	want := newRun(t, testdevice.Name, newNet(1), low)
	for i := range 3 {
		if err := want.train(16, 2, i); err != nil {
			t.Fatal(err)
		}
	}
	for name, o := range map[string][]snug.Option{
		"plain": nil, "checkpoint": {checkpoint.Every(1)}, "offload": {offload.Activations(all)},
		"both": {checkpoint.Every(2), offload.Activations(all)},
	} {
		var stats [2]memory.Stats
		for k, device := range []string{testdevice.Name, testdevice.Dry} {
			r := newRun(t, device, newNet(1), append(o, low)...)
			base := r.dev.Memory().Stats().Allocated
			for i := range 3 {
				if err := r.train(16, 2, i); err != nil {
					t.Fatal(name, err)
				}
			}
			if stats[k] = r.dev.Memory().Stats(); stats[k].Allocated != base {
				t.Errorf("%s: %d bytes leak", name, stats[k].Allocated-base)
			}
			if k == 0 {
				if n := differ(want.bits(t), r.bits(t)); n != 0 {
					t.Errorf("%s: %d values differ", name, n)
				}
				stats[k] = r.dev.Memory().Stats()
			}
		}
		stats[0].Requests = stats[1].Requests
		if stats[0].Peak != stats[1].Peak || stats[0].AtPeak != stats[1].AtPeak {
			t.Errorf("%s: predicted %+v\nmeasured %+v", name, stats[1], stats[0])
		}
	}
}

// An expanded view is cast where it has its elements: not once for each place.
func TestAutocastOfAnExpandedView(t *testing.T) {
	const rows, width = 1 << 10, 64
	d := open(t)
	if err := d.Train(bg, func(s *snug.Scope) error {
		x, w := ramp(s, 1, width).Track(), ramp(s, width, 2)
		one := x.MatMul(w)
		base := d.Memory().Stats().Allocated
		d.Memory().ResetPeak()
		all := x.Expand(rows, width).MatMul(w)
		if st := d.Memory().Stats(); st.Peaks[memory.Activations]-base >= rows*width*2 {
			t.Errorf("a peak of %d bytes, of which the result has %d", st.Peaks[memory.Activations]-base, rows*2*2)
		}
		a, err := snug.Download[float32](one)
		if err != nil {
			return err
		}
		b, err := snug.Download[float32](all)
		if err != nil {
			return err
		}
		if b[0] != a[0] || b[2*rows-1] != a[1] || b[0] == 0 {
			t.Error(b[0], b[2*rows-1], "want", a)
		}
		if err := all.Sum().Backward(); err != nil {
			return err
		}
		g, err := snug.Download[float32](x.Grad())
		if err != nil {
			return err
		}
		v, err := snug.Download[float32](w)
		if want := rows * (v[0] + v[1]); !(math.Abs(float64(g[0]-want)) <= 0.02*math.Abs(float64(want))) {
			t.Errorf("gradient %g, want %g", g[0], want)
		}
		return err
	}, amp.Autocast(snug.BFloat16)); err != nil {
		t.Fatal(err)
	}
}
