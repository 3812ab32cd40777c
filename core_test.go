package snug_test

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

// What the tests of the core share: a device that reports leaks, operations as a user
// makes them, and two models made of those.

var bg = context.Background()

// full asks for what is too long for every change: make full.
var full = os.Getenv("SNUG_FULL") != ""

func open(t testing.TB) *snug.Device {
	t.Helper()
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := d.Memory().Stats().Categories; n[memory.Activations]+n[memory.Inputs]+n[memory.Flowing]+n[memory.Workspace] != 0 {
			t.Errorf("leak: %v", n)
		}
		d.Close()
	})
	return d
}

func batch(n, width, seed int) []float32 {
	x := make([]float32, n*width)
	for i := range x {
		x[i] = float32(math.Sin(float64(i*7+seed*13) * 0.7))
	}
	return x
}

func ramp(s *snug.Scope, shape ...int) *snug.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return snug.Upload(s, batch(n, 1, 3), shape...)
}

func rows(x *snug.Tensor, from, to int) *snug.Tensor { return x.Narrow(0, from, to-from) }

// fails runs fn in training and returns its error, which must say all of these.
func fails(t *testing.T, d *snug.Device, fn func(*snug.Scope) error, o ...snug.Option) func(is error, says ...string) {
	t.Helper()
	err := d.Train(bg, fn, o...)
	return func(is error, says ...string) {
		t.Helper()
		if err == nil || is != nil && !errors.Is(err, is) {
			t.Fatalf("error is %v, want %v", err, is)
		}
		for _, w := range says {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
}

func place(t testing.TB, d *snug.Device, ps ...*snug.Param) {
	t.Helper()
	if err := nn.Init(bg, d, &struct{ P []*snug.Param }{ps}, snug.NewRand(5)); err != nil {
		t.Fatal(err)
	}
}

func valuesOf(t testing.TB, p *snug.Param) (v []float64) {
	t.Helper()
	if err := p.Device().Infer(bg, func(s *snug.Scope) (err error) {
		v, err = snug.Download[float64](p.In(s))
		return
	}); err != nil {
		t.Fatal(err)
	}
	return v
}

// mse is the mean of (x − want)², made of two Go kernels.
func mse(x, want *snug.Tensor) *snug.Tensor { return snug.Apply(&mseOp, x, want) }

var mseOp = snug.Op{
	Name: "mse",
	Shape: func(in ...[]int) ([]int, error) {
		if !slices.Equal(in[0], in[1]) {
			return []int{1}, snug.ErrShape
		}
		return []int{1}, nil
	},
	Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
		c.Save("x", in[0])
		c.Save("want", in[1])
		return snug.Map(c.Scope(), "mse", []int{1}, func(dst []float32, src ...[]float32) error {
			var sum float64
			for i, v := range src[0] {
				d := float64(v - src[1][i])
				sum += d * d
			}
			dst[0] = float32(sum / float64(len(src[0])))
			return nil
		}, in...)
	},
	Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
		dx := snug.Map(c.Scope(), "mse backward", c.Shape(0), func(dst []float32, src ...[]float32) error {
			for i := range dst {
				dst[i] = src[2][0] * 2 * (src[0][i] - src[1][i]) / float32(len(dst))
			}
			return nil
		}, c.Saved("x"), c.Saved("want"), dy)
		return []*snug.Tensor{dx, nil}
	},
}

// softSign is x/(1 + |x|); the gradient is dy·(1 − |y|)², so that it saves its result.
func softSign(x *snug.Tensor) *snug.Tensor { return snug.Apply(&softSignOp, x) }

var softSignOp = snug.Op{
	Name: "soft sign",
	Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
		y := snug.Map(c.Scope(), "soft sign", in[0].Shape(), func(dst []float32, src ...[]float32) error {
			for i, v := range src[0] {
				dst[i] = v / float32(1+math.Abs(float64(v)))
			}
			return nil
		}, in[0])
		c.Save("y", y)
		return y
	},
	Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
		return []*snug.Tensor{snug.Map(c.Scope(), "soft sign backward", c.Shape(0), func(dst []float32, src ...[]float32) error {
			for i, y := range src[0] {
				d := 1 - float32(math.Abs(float64(y)))
				dst[i] = src[1][i] * d * d
			}
			return nil
		}, c.Saved("y"), dy)}
	},
}

// scaledReLU is max(0, x·w), w a number a column: its result is a recipe of x and w.
func scaledReLU(x *snug.Tensor, w snug.Operand) *snug.Tensor { return snug.Apply(&scaledReLUOp, x, w) }

var scaledReLUOp = snug.Op{
	Name: "scaled relu",
	Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
		c.Save("x", in[0])
		c.Save("w", in[1])
		return in[0].Mul(in[1]).ReLUInPlace()
	},
	Remake: func(c *snug.Call) *snug.Tensor { return c.Saved("x").Mul(c.Saved("w")).ReLUInPlace() },
	Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
		x, w := c.Saved("x"), c.Saved("w")
		open := c.Run("relu backward", dy.Shape(), nil, x.Mul(w), dy)
		return []*snug.Tensor{open.Mul(w), open.Mul(x).Sum(0)}
	},
}

// dense is x·w + b.
type dense struct{ W, B *snug.Param }

func newDense(in, out int) *dense {
	bound := 1 / math.Sqrt(float64(in))
	return &dense{snug.NewParam(snug.Uniform(bound), in, out), snug.NewParam(snug.Uniform(bound), out)}
}

func (l *dense) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor { return x.MatMul(l.W).Add(l.B) }, x)
}

// normal shifts by a running mean of its input's rows, and scales.
type shifted struct{ Scale, Mean, Count *snug.Param }

func newShifted(n int) *shifted {
	return &shifted{snug.NewParam(snug.Const(1), n), snug.NewBuffer(snug.Const(0), n), snug.NewBuffer(snug.Const(0), 1)}
}

func (l *shifted) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(x *snug.Tensor) *snug.Tensor {
		s := x.Scope()
		if s.Training() && !l.Mean.Frozen() {
			m := x.Detach().Mean(0)
			l.Mean.Assign(snug.Apply(&lerpOp, l.Mean, m))
			l.Count.Assign(l.Count.In(s).Add(snug.Full(s, 1, snug.Float32, 1)))
		}
		return scaledReLU(x.Add(l.Mean), l.Scale)
	}, x)
}

var lerpOp = snug.Op{Name: "lerp", Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
	return c.Run("lerp", in[0].Shape(), []float64{0.1, 1}, in...)
}}

type mlp struct{ Hidden, Out *dense }

func newMLP() *mlp { return &mlp{newDense(24, 64), newDense(64, 8)} }

func (m *mlp) Forward(x *snug.Tensor) *snug.Tensor {
	x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return softSign(m.Hidden.Forward(x)).Dropout(0.5) }, x)
	return m.Out.Forward(x)
}

type residual struct {
	N1  *shifted
	FC1 *dense
	N2  *shifted
	FC2 *dense
}

func (r *residual) Forward(x *snug.Tensor) *snug.Tensor {
	h := r.FC1.Forward(r.N1.Forward(x)).Dropout(0.5)
	return r.FC2.Forward(r.N2.Forward(h)).AddInPlace(x)
}

type net struct {
	Stem    *dense
	Layer1  []*residual
	FC      *dense
	Segment int // Blocks joined into one
}

func newNet(segment int) *net {
	m := &net{Stem: newDense(24, 32), FC: newDense(32, 8), Segment: segment}
	for range 4 {
		m.Layer1 = append(m.Layer1, &residual{newShifted(32), newDense(32, 32), newShifted(32), newDense(32, 32)})
	}
	return m
}

func (m *net) Forward(x *snug.Tensor) *snug.Tensor {
	x = m.Stem.Forward(x)
	for i := 0; i < len(m.Layer1); i += m.Segment {
		x = snug.Block(func(x *snug.Tensor) *snug.Tensor {
			for _, b := range m.Layer1[i : i+m.Segment] {
				x = snug.Block(b.Forward, x)
			}
			return x
		}, x)
	}
	return m.FC.Forward(x)
}

// run trains a model with AdamW.
type run struct {
	dev  *snug.Device
	rng  *snug.Rand
	m    nn.Layer
	o    optim.Optimizer
	w    *optim.Window
	opts []snug.Option
	step func(w *optim.Window, loss *snug.Tensor, count float64) error // the last micro-batch's
}

func newRun(t testing.TB, device string, m nn.Layer, o ...snug.Option) *run {
	t.Helper()
	d, err := snug.Open(device, snug.Config{LimitBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r := &run{dev: d, rng: snug.NewRand(7), m: m}
	if err := nn.Init(bg, d, m, r.rng); err != nil {
		t.Fatal(err)
	}
	if r.o, err = optim.NewAdamW(nn.Params(m), optim.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	r.w = optim.NewWindow(r.o, optim.WindowConfig{})
	r.opts = append(o, snug.Random(r.rng))
	return r
}

// micro is one micro-batch's forward and backward.
func (r *run) micro(n, seed int, backward func(*optim.Window, *snug.Tensor, float64) error) error {
	return r.dev.Train(bg, func(s *snug.Scope) error {
		l := mse(r.m.Forward(snug.Upload(s, batch(n, 24, seed), n, 24)), snug.Upload(s, batch(n, 8, seed+1), n, 8))
		return backward(r.w, l, float64(n))
	}, r.opts...)
}

func plainBackward(w *optim.Window, l *snug.Tensor, n float64) error { return w.Backward(l, n) }
func backwardStep(w *optim.Window, l *snug.Tensor, n float64) error {
	_, err := w.BackwardStep(l, n)
	return err
}

// train is one step of micro micro-batches.
func (r *run) train(n, micro, seed int) error {
	for i := range micro {
		last := plainBackward
		if i == micro-1 && r.step != nil {
			last = r.step
		}
		if err := r.micro(n/micro, seed+i, last); err != nil {
			return err
		}
	}
	if r.step != nil {
		return nil
	}
	_, err := r.w.Step()
	return err
}

// bits are all values of a module's parameters, buffers and the optimizer's state.
func (r *run) bits(t testing.TB) (out []uint32) {
	t.Helper()
	err := r.dev.Infer(bg, func(s *snug.Scope) error {
		for _, seq := range []func(func(string, *snug.Param) bool){nn.Params(r.m), r.o.State()} {
			for _, p := range seq {
				v, err := snug.Download[float32](p.In(s))
				if err != nil {
					return err
				}
				for _, f := range v {
					out = append(out, math.Float32bits(f))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(out, uint32(r.rng.Position()))
}

// distance is that of two runs' values, relative to the second one's norm.
func distance(a, b []uint32) float64 {
	var diff, norm float64
	for i := range b {
		x, y := float64(math.Float32frombits(a[i])), float64(math.Float32frombits(b[i]))
		diff += (x - y) * (x - y)
		norm += y * y
	}
	return math.Sqrt(diff / norm)
}

func differ(a, b []uint32) (n int) {
	if len(a) != len(b) {
		return max(len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
