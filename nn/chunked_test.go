package nn_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optest"
	"github.com/snug-ml/snug/optim"
)

// every is a cross entropy with all there is to it, over 5 classes.
var every = nn.CrossEntropyConfig{Weight: []float64{0.5, 2, 1, 0, 3}, Smoothing: 0.25, Ignore: []int64{2}}

// x, weight, target and, at the end, a bias, with logits for a row, two or all at a time.
func TestLinearCrossEntropy(t *testing.T) {
	inputs := []optest.Input{{}, {}, optest.Below(5)}
	shapes := [][][]int{
		{{7, 3}, {5, 3}, {7}, {5}}, {{2, 3, 4}, {5, 4}, {2, 3}, {5}}, {{4}, {5, 4}, {}, {5}}, {{1, 1}, {5, 1}, {1}, {5}},
		{{0, 3}, {5, 3}, {0}, {5}}, {{3, 0}, {5, 0}, {3}, {5}},
	}
	for name, c := range map[string]nn.CrossEntropyConfig{
		"plain": nn.DefaultCrossEntropy(), "everything": every, "sum": {Sum: true}, "ignore": {Ignore: []int64{0, 3}},
	} {
		for _, bytes := range []int64{1, 40, 1 << 20} {
			if bytes != 40 && name != "everything" {
				continue
			}
			head := func(x ...*snug.Tensor) *snug.Tensor {
				var bias snug.Operand
				if len(x) == 4 {
					bias = x[3]
				}
				loss, _ := nn.LinearCrossEntropyConfig{CrossEntropyConfig: c, ChunkBytes: bytes}.Loss(x[0], x[1], bias, x[2])
				return loss
			}
			op := optest.Op{Name: fmt.Sprintf("%s, %d bytes", name, bytes), F: head, Inputs: inputs, Shapes: shapes[:1]}
			if bytes == 40 {
				op.Shapes = append(op.Shapes, shapes[1:]...)
				op.Shapes = append(op.Shapes, [][]int{{7, 3}, {5, 3}, {7}})
			}
			optest.Run(t, op)
		}
	}
	optest.Run(t, optest.Op{Name: "threads", Inputs: []optest.Input{{}, {}, optest.Below(500)}, Large: [][]int{{90, 80}, {500, 80}, {90}},
		F: func(x ...*snug.Tensor) *snug.Tensor {
			loss, _ := nn.LinearCrossEntropyConfig{ChunkBytes: 64 << 10}.Loss(x[0], x[1], nil, x[2])
			return loss
		}})
}

// language is an embedding tied to the head.
type language struct{ Tok *nn.Embedding }

// The chunked head is the whole one to rounding, with and without a tied weight, and in
// dx to the bit.
func TestLinearCrossEntropyIsTheWholeOne(t *testing.T) {
	const rows, width, classes = 50, 24, 70
	d := open(t)
	run := func(dtype snug.DType, c nn.CrossEntropyConfig, chunk int64) (v [][]float64) {
		m := &language{nn.NewEmbedding(classes, width)}
		bias := snug.NewParam(snug.Const(0.125), classes)
		all := struct {
			M *language
			B *snug.Param
		}{m, bias}
		if err := nn.SetDType(&all, dtype); err != nil {
			t.Fatal(err)
		}
		if err := nn.Init(t.Context(), d, &all, snug.NewRand(4)); err != nil {
			t.Fatal(err)
		}
		defer nn.Close(&all)
		if err := d.Train(t.Context(), func(s *snug.Scope) error {
			at, target := make([]int, rows), make([]int, rows)
			for i := range at {
				at[i], target[i] = i*i%classes, (7*i+3)%classes
			}
			target[5], target[6] = -100, -100
			x, y := snug.Upload(s, at, 2, rows/2), snug.Upload(s, target, 2, rows/2)
			h := m.Tok.Forward(x).MulScalar(1)
			var loss, count *snug.Tensor
			if chunk == 0 {
				loss, count = c.Loss(h.Linear(m.Tok.Weight, bias), y)
			} else {
				loss, count = nn.LinearCrossEntropyConfig{CrossEntropyConfig: c, ChunkBytes: chunk}.Loss(h, m.Tok.Weight, bias, y)
			}
			if err := loss.Backward(); err != nil {
				return err
			}
			for _, t := range []*snug.Tensor{loss, count, m.Tok.Weight.Grad(s), bias.Grad(s)} {
				f, err := snug.Download[float64](t)
				if v = append(v, f); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return v
	}
	weights := make([]float64, classes)
	for i := range weights {
		weights[i] = float64(i%5) / 4
	}
	for dtype, tol := range map[snug.DType]float64{snug.Float32: 1e-6, snug.Float64: 1e-14, snug.BFloat16: 1.0 / 128, snug.Float16: 1.0 / 1024} {
		for _, c := range []nn.CrossEntropyConfig{nn.DefaultCrossEntropy(), {Ignore: []int64{-100}, Sum: true}, {Ignore: []int64{-100, 3}, Smoothing: 0.1, Weight: weights}} {
			whole := run(dtype, c, 0)
			for _, chunk := range []int64{1, 8 * classes * 4, 1 << 20} {
				for i, got := range run(dtype, c, chunk) {
					var diff, norm float64
					for k, w := range whole[i] {
						diff += (got[k] - w) * (got[k] - w)
						norm += w * w
					}
					if !(math.Sqrt(diff) <= tol*math.Sqrt(norm)) {
						t.Errorf("%s, %d bytes, value %d: differs by %g of %g", dtype, chunk, i, math.Sqrt(diff), math.Sqrt(norm))
					}
				}
			}
		}
	}
}

// Under autocast it is the product that Linear is there, for parameters in float32 whatever
// type x comes in: its loss and gradients are the whole head's but for rounding to 16 bits,
// float32 ones, also with float16's losses scaled; and the weight is cast once.
func TestLinearCrossEntropyUnderAutocast(t *testing.T) {
	const rows, width, classes = 50, 24, 70
	type head struct {
		In  *nn.Linear
		Out *nn.Linear
	}
	run := func(chunk int64, lossScale bool, o ...snug.Option) (v [][]float64, casts int64) {
		d, m := open(t), &head{nn.NewLinear(width, width, false), nn.NewLinear(width, classes, true)}
		if err := nn.Init(t.Context(), d, m, snug.NewRand(4)); err != nil {
			t.Fatal(err)
		}
		sgd, err := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1})
		if err != nil {
			t.Fatal(err)
		}
		var c optim.WindowConfig
		if lossScale {
			c.Scaler = amp.NewScaler(amp.DefaultScaler())
		}
		w := optim.NewWindow(sgd, c)
		if err := d.Train(t.Context(), func(s *snug.Scope) error {
			target := make([]int, rows)
			for i := range target {
				target[i] = (7*i + 3) % classes
			}
			x, y := snug.RandNormal(s, snug.Float32, rows, width), snug.Upload(s, target, rows)
			h := m.In.Forward(x) // low
			if lossScale {
				h = h.Cast(snug.Float32)
			}
			var loss *snug.Tensor
			if chunk == 0 {
				loss = nn.CrossEntropy(m.Out.Forward(h), y)
			} else {
				c := nn.DefaultLinearCrossEntropy()
				c.ChunkBytes = chunk
				loss, _ = c.Loss(h, m.Out.Weight, m.Out.Bias, y)
			}
			if loss.DType() != snug.Float32 {
				t.Error("a loss of", loss.DType())
			}
			casts = d.Memory().Stats().Categories[memory.Casts]
			f, err := snug.Download[float64](loss)
			v = append(v, f)
			return errors.Join(err, w.Backward(loss, 1))
		}, append(o, snug.Random(snug.NewRand(1)))...); err != nil {
			t.Fatal(err)
		}
		for name, p := range nn.Params(m) {
			if p.DType() != snug.Float32 {
				t.Error(name, p.DType())
			}
			before, err := snug.GetParam[float64](p)
			if v = append(v, before); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := w.Step(); err != nil || !r.Stepped {
			t.Fatal(r, err)
		}
		i := 1
		for _, p := range nn.Params(m) { // what a step of rate 1 takes away
			after, err := snug.GetParam[float64](p)
			if err != nil {
				t.Fatal(err)
			}
			for k := range after {
				v[i][k] -= after[k]
			}
			i++
		}
		return v, casts
	}
	far := func(a, b []float64) float64 {
		var diff, norm float64
		for k, w := range b {
			diff += (a[k] - w) * (a[k] - w)
			norm += w * w
		}
		return math.Sqrt(diff / norm)
	}
	exact, _ := run(0, false)
	for dtype, tol := range map[snug.DType]float64{snug.BFloat16: 1.0 / 64, snug.Float16: 1.0 / 512} {
		o, scaled := amp.Autocast(dtype), dtype == snug.Float16
		whole, wantCasts := run(0, scaled, o)
		for _, chunk := range []int64{1, 8 * classes * 6, 1 << 20} {
			got, casts := run(chunk, scaled, o)
			if casts != wantCasts || casts == 0 {
				t.Errorf("%s, %d bytes: %d bytes of casts, want %d", dtype, chunk, casts, wantCasts)
			}
			for i := range got {
				if d, e := far(got[i], whole[i]), far(got[i], exact[i]); !(d <= tol) || !(e <= tol) || e == 0 {
					t.Errorf("%s, %d bytes, value %d: %g from the whole one, %g from float32, at most %g wanted", dtype, chunk, i, d, e, tol)
				}
			}
		}
	}
	off, _ := run(1<<20, false, amp.Autocast(snug.Float32))
	if d := far(off[1], exact[1]); !(d <= 1e-6) {
		t.Error("switched off it differs by", d)
	}
}

// A row of dx has the whole one's bits.
func TestLinearCrossEntropyInput(t *testing.T) {
	run := func(loss func(x, w, y *snug.Tensor) *snug.Tensor) (v []float32) {
		if err := open(t).Train(t.Context(), func(s *snug.Scope) (err error) {
			x := snug.RandNormal(s, snug.Float32, 40, 30).Track()
			w, y := snug.RandNormal(s, snug.Float32, 60, 30), snug.Upload(s, make([]int, 40), 40)
			if err := loss(x, w, y).Backward(); err != nil {
				return err
			}
			v, err = snug.Download[float32](x.Grad())
			return err
		}, snug.Random(snug.NewRand(1))); err != nil {
			t.Fatal(err)
		}
		return v
	}
	whole := run(func(x, w, y *snug.Tensor) *snug.Tensor { return nn.CrossEntropy(x.Linear(w, nil), y) })
	c := nn.DefaultLinearCrossEntropy()
	c.ChunkBytes = 7 * 60 * 4
	if got := run(func(x, w, y *snug.Tensor) *snug.Tensor { loss, _ := c.Loss(x, w, nil, y); return loss }); !slices.Equal(got, whole) {
		t.Errorf("%v, want %v", got[:5], whole[:5])
	}
}

// What is held after forward is one number a row; the peak is a chunk, and in backward the
// gradients that are wanted.
func TestLinearCrossEntropyMemory(t *testing.T) {
	const rows, width, classes, chunk = 512, 64, 4096, 1 << 20
	measure := func(wantX, wantW bool) (held, forward, backward int64) {
		d, err := snug.Open(testdevice.Dry, snug.Config{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		w := nn.NewLinear(width, classes, false)
		if err := nn.Init(t.Context(), d, w, nil); err != nil {
			t.Fatal(err)
		}
		w.Weight.SetFrozen(!wantW)
		if err := d.Train(t.Context(), func(s *snug.Scope) error {
			x, y := snug.Zeros(s, snug.Float32, rows, width), snug.Zeros(s, snug.Int64, rows)
			if wantX {
				x.Track()
			}
			base := d.Memory().Stats().Allocated
			d.Memory().ResetPeak()
			loss, _ := nn.LinearCrossEntropyConfig{ChunkBytes: chunk}.Loss(x, w.Weight, nil, y)
			st := d.Memory().Stats()
			held, forward = st.Allocated-base, st.Peak.Allocated-base-st.AtPeak[memory.Workspace]
			if !wantX && !wantW {
				return nil
			}
			d.Memory().ResetPeak()
			err := loss.Backward()
			st = d.Memory().Stats()
			backward = st.Peak.Allocated - base - st.AtPeak[memory.Workspace]
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return held, forward, backward
	}
	const small, dx, dw = 16 << 10, rows * width * 4, classes * width * 4
	for _, c := range []struct {
		x, w           bool
		held, backward int64
	}{{false, false, 0, 0}, {true, false, rows * 4, chunk + dx}, {false, true, rows * 4, chunk + dw}, {true, true, rows * 4, chunk + dx + dw}} {
		held, forward, backward := measure(c.x, c.w)
		if !(held-c.held >= 0 && held-c.held <= small) || !(forward-chunk <= small) || !(backward >= c.backward || c.backward == 0) || !(backward-c.backward <= small) {
			t.Errorf("%+v: %d bytes held, peaks %d and %d", c, held, forward, backward)
		}
	}
}

func TestLinearCrossEntropyRefuses(t *testing.T) {
	d := open(t)
	for _, c := range []struct {
		x, w, bias, target []int
		bytes              int64
		err                error
		text               string
	}{
		{[]int{2, 3}, []int{5, 4}, nil, []int{2}, 1, snug.ErrShape, "x [2 3], weight [5 4]"},
		{[]int{2, 3}, []int{5, 3}, nil, []int{3}, 1, snug.ErrShape, "target [3]"},
		{[]int{2, 3}, []int{5, 3}, []int{4}, []int{2}, 1, snug.ErrShape, "bias [4]"},
		{[]int{}, []int{5, 3}, nil, []int{2}, 1, snug.ErrShape, "x []"},
		{[]int{2, 3}, []int{5}, nil, []int{2}, 1, snug.ErrShape, "weight [5]"},
		{[]int{2, 3}, []int{5, 3}, nil, []int{2}, 0, nil, "0 bytes of logits"},
	} {
		err := d.Train(t.Context(), func(s *snug.Scope) error {
			var bias snug.Operand
			if c.bias != nil {
				bias = snug.Zeros(s, snug.Float32, c.bias...)
			}
			x, w := snug.Zeros(s, snug.Float32, c.x...), snug.Zeros(s, snug.Float32, c.w...)
			nn.LinearCrossEntropyConfig{ChunkBytes: c.bytes}.Loss(x, w, bias, snug.Zeros(s, snug.Int64, c.target...))
			return nil
		})
		if err == nil || c.err != nil && !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Types differ where Linear's may not, either.
func TestLinearCrossEntropyOfTwoTypes(t *testing.T) {
	err := open(t).Train(t.Context(), func(s *snug.Scope) error {
		x, w := snug.Zeros(s, snug.BFloat16, 2, 3), snug.Zeros(s, snug.Float32, 5, 3)
		nn.LinearCrossEntropy(x, w, nil, snug.Zeros(s, snug.Int64, 2))
		return nil
	})
	if !errors.Is(err, snug.ErrDType) || !strings.Contains(err.Error(), "linear cross entropy: ") {
		t.Error(err)
	}
}

// A language model's head, forward and backward, with all logits or some at a time.
func BenchmarkLinearCrossEntropy(b *testing.B) {
	const rows, width, classes = 1024, 256, 50257
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 4 << 30})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	m := nn.NewLinear(width, classes, false)
	if err := nn.Init(b.Context(), d, m, snug.NewRand(1)); err != nil {
		b.Fatal(err)
	}
	run := func(loss func(x, y *snug.Tensor) *snug.Tensor) func(b *testing.B) {
		return func(b *testing.B) {
			var peak int64
			for b.Loop() {
				if err := d.Train(b.Context(), func(s *snug.Scope) error {
					x, y := snug.RandNormal(s, snug.Float32, rows, width).Track(), snug.Zeros(s, snug.Int64, rows)
					base := d.Memory().Stats().Allocated
					d.Memory().ResetPeak()
					err := loss(x, y).Backward()
					peak = d.Memory().Stats().Peak.Allocated - base
					return err
				}, snug.Random(snug.NewRand(1))); err != nil {
					b.Fatal(err)
				}
				if err := m.Weight.Zero(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(peak), "peak-B")
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
		}
	}
	b.Run("whole", run(func(x, y *snug.Tensor) *snug.Tensor { return nn.CrossEntropy(m.Forward(x), y) }))
	b.Run("chunked", run(func(x, y *snug.Tensor) *snug.Tensor { return nn.LinearCrossEntropy(x, m.Weight, nil, y) }))
}
