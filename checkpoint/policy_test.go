package checkpoint_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
)

var (
	everything = checkpoint.Policy(func(string, []int, snug.DType, int64) bool { return true })
	large      = checkpoint.Policy(func(_ string, _ []int, _ snug.DType, bytes int64) bool { return bytes >= 1<<12 })
	away       = offload.Activations(offload.Config{MinBytes: 1})
)

// Whatever a policy keeps, three steps of a ResNet and a GPT leave the plain run's bits,
// under autocast those of autocast alone, and a dry run predicts all statistics.
func TestPoliciesOnModels(t *testing.T) {
	policies := []struct {
		name string
		opts []snug.Option
	}{
		{"every", []snug.Option{checkpoint.Every(1)}},
		{"products", []snug.Option{checkpoint.Every(1), checkpoint.Products()}},
		{"by name", nil},
		{"by size", []snug.Option{checkpoint.Every(2), large}},
		{"everything", []snug.Option{checkpoint.Every(1), everything}},
		{"products, offload", []snug.Option{checkpoint.Every(1), checkpoint.Products(), away}},
		{"budget", []snug.Option{checkpoint.Every(1), checkpoint.Budget(16 << 10)}},
		{"budget, offload", []snug.Option{checkpoint.Every(1), checkpoint.Budget(10 << 10), away}},
		{"everything, offload", []snug.Option{checkpoint.Every(1), everything, away}},
	}
	if testing.Short() {
		policies = policies[5:]
	}
	subjects := map[string]struct {
		model func() nn.Layer
		data  func(*snug.Scope, int) (x, y *snug.Tensor)
		names []string
	}{
		"resnet":              {newResNet, images(4), []string{"conv2d"}},
		"gpt":                 {func() nn.Layer { return newGPT(0) }, tokens(4), []string{"gelu", "layer norm"}},
		"gpt with dropout":    {func() nn.Layer { return newGPT(0.2) }, tokens(4), []string{"gelu", "layer norm"}},
		"gpt, nested":         {func() nn.Layer { return nested{newGPT(0.2)} }, tokens(4), []string{"gelu", "layer norm"}},
		"resnet, nested once": {func() nn.Layer { return nested{newResNet()} }, images(4), []string{"conv2d"}},
	}
	for name, v := range subjects {
		for precision, o := range map[string][]snug.Option{"float32": nil, "bfloat16": {amp.Autocast(snug.BFloat16)}} {
			model := v.model
			if n, ok := model().(nested); ok { // compared with what is not
				model = func() nn.Layer { return n.Layer }
			}
			plain, most := newTrained(t, testdevice.Name, model(), v.data, o...).run(t, 3)
			for _, p := range policies {
				opts := append(slices.Clone(p.opts), o...)
				if p.opts == nil {
					opts = append(opts, checkpoint.Every(1), checkpoint.Keep(v.names...))
				}
				r := newTrained(t, testdevice.Name, v.model(), v.data, opts...)
				bits, measured := r.run(t, 3)
				if n := differ(plain, bits); n != 0 {
					t.Errorf("%s, %s, %s: %d of %d values differ", name, precision, p.name, n, len(plain))
				}
				if _, predicted := newTrained(t, testdevice.Dry, v.model(), v.data, opts...).run(t, 3); predicted != measured {
					t.Errorf("%s, %s, %s: predicted %+v\nmeasured %+v", name, precision, p.name, predicted, measured)
				}
				t.Logf("%-20s %-9s %-20s peak %d of %d", name, precision, p.name, measured[0].Peak.Allocated, most[0].Peak.Allocated)
			}
		}
	}
}

// nested is a model as a recomputed block of its own, around those that are chosen in it.
type nested struct{ nn.Layer }

func (m nested) Forward(x *snug.Tensor) *snug.Tensor {
	return snug.Block(func(x *snug.Tensor) *snug.Tensor {
		return snug.Block(m.Layer.Forward, x, checkpoint.Here())
	}, x, checkpoint.Here())
}

// counted is an operation that counts its runs, per name: x·|x|/(1 + |x|), say; it saves x
// and, made by Forward beside its result, 1 + |x|.
type counted map[string]int

func (n counted) run(name string, x *snug.Tensor) *snug.Tensor {
	return snug.Apply(&snug.Op{
		Name: name,
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			c.Save("x", in[0])
			d := snug.Map(c.Scope(), "denominator", in[0].Shape(), func(dst []float32, src ...[]float32) error {
				n[name]++
				for i, v := range src[0] {
					dst[i] = 1 + max(v, -v)
				}
				return nil
			}, in[0])
			c.Save("d", d)
			return in[0].Mul(in[0]).DivInPlace(d)
		},
		Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			y := c.Saved("x").Div(c.Saved("d"))
			return []*snug.Tensor{dy.Mul(y.Add(y.Mul(y)))} // a made-up one
		},
	}, x)
}

// gradient runs fn once in training and is its input's gradient.
func gradient(t *testing.T, fn func(x *snug.Tensor) *snug.Tensor, o ...snug.Option) (g []float64) {
	t.Helper()
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Train(bg, func(s *snug.Scope) error {
		x := snug.Upload(s, waves(40, 1), 40).Track()
		y := snug.Block(fn, x, o...)
		if err := y.Sum().Backward(); err != nil {
			return err
		}
		var err error
		g, err = snug.Download[float64](x.Grad())
		return err
	}, snug.Random(snug.NewRand(3))); err != nil {
		t.Fatal(err)
	}
	if n := d.Memory().Stats().Allocated; n != 0 {
		t.Errorf("%d bytes leak", n)
	}
	return g
}

// What is kept runs once, the rest twice, and what nothing needs once, too.
func TestKeptRunsOnce(t *testing.T) {
	here := checkpoint.Here()
	for _, c := range []struct {
		name  string
		block func(n counted, x *snug.Tensor) *snug.Tensor
		opts  []snug.Option
		want  map[string]int
	}{
		{"no policy", func(n counted, x *snug.Tensor) *snug.Tensor { return n.run("b", n.run("a", x)) },
			[]snug.Option{here}, map[string]int{"a": 2, "b": 2}},
		{"by name", func(n counted, x *snug.Tensor) *snug.Tensor { return n.run("b", n.run("a", x)) },
			[]snug.Option{here, checkpoint.Keep("a")}, map[string]int{"a": 1, "b": 2}},
		{"without recomputing", func(n counted, x *snug.Tensor) *snug.Tensor { return n.run("a", x) },
			[]snug.Option{everything}, map[string]int{"a": 1}},
		{"draws go on", func(n counted, x *snug.Tensor) *snug.Tensor { return n.run("a", x.Dropout(0.5)).Dropout(0.5).Tanh() },
			[]snug.Option{here, checkpoint.Keep("dropout")}, map[string]int{"a": 2}},
		{"written in place", func(n counted, x *snug.Tensor) *snug.Tensor { return n.run("b", n.run("a", x).TanhInPlace()) },
			[]snug.Option{here, checkpoint.Keep("a", "b")}, map[string]int{"a": 2, "b": 1}},
		{"a view written in place", func(n counted, x *snug.Tensor) *snug.Tensor {
			y := n.run("a", x)
			y.Reshape(2, 20).Narrow(1, 3, 5).AddInPlace(snug.Full(x.Scope(), 1, snug.Float32, 1))
			return n.run("b", y.Detach()).Add(x)
		}, []snug.Option{here, everything}, map[string]int{"a": 2, "b": 1}},
		{"inside another block", func(n counted, x *snug.Tensor) *snug.Tensor {
			return n.run("b", snug.Block(func(x *snug.Tensor) *snug.Tensor { return n.run("a", x) }, x))
		}, []snug.Option{here, checkpoint.Keep("a", "b")}, map[string]int{"a": 1, "b": 1}},
		{"another policy inside", func(n counted, x *snug.Tensor) *snug.Tensor {
			return n.run("a", snug.Block(func(x *snug.Tensor) *snug.Tensor { return n.run("b", n.run("a", x)) }, x, checkpoint.Keep("b")))
		}, []snug.Option{here, checkpoint.Keep("a")}, map[string]int{"a": 3, "b": 1}},
		{"nested", func(n counted, x *snug.Tensor) *snug.Tensor {
			return n.run("b", snug.Block(func(x *snug.Tensor) *snug.Tensor { return n.run("c", n.run("a", x)) }, x, here))
		}, []snug.Option{here, checkpoint.Keep("a", "b")}, map[string]int{"a": 1, "b": 1, "c": 3}},
		{"nested, the inner one alone", func(n counted, x *snug.Tensor) *snug.Tensor {
			return n.run("b", snug.Block(func(x *snug.Tensor) *snug.Tensor { return n.run("c", n.run("a", x)) }, x, here, checkpoint.Keep("c")))
		}, []snug.Option{here}, map[string]int{"a": 3, "b": 2, "c": 1}},
		{"taken in the first run of a block in the second of another", func(n counted, x *snug.Tensor) *snug.Tensor {
			return snug.Block(func(x *snug.Tensor) *snug.Tensor { return n.run("a", x) }, x, here, everything)
		}, []snug.Option{here}, map[string]int{"a": 1}},
	} {
		n, plain := counted{}, counted{}
		want := gradient(t, func(x *snug.Tensor) *snug.Tensor { return c.block(plain, x) }, checkpoint.Policy(func(string, []int, snug.DType, int64) bool { return false }))
		got := gradient(t, func(x *snug.Tensor) *snug.Tensor { return c.block(n, x) }, c.opts...)
		if !slices.Equal(want, got) {
			t.Errorf("%s: gradient %v, want %v", c.name, got, want)
		}
		for op, runs := range c.want {
			if n[op] != runs {
				t.Errorf("%s: %s ran %d times, want %d", c.name, op, n[op], runs)
			}
		}
	}
}

// A kept result that is written in place once its block has ended is computed again.
func TestKeptResultIsWrittenOutside(t *testing.T) {
	grad := func(n counted, o ...snug.Option) []float64 {
		return gradient(t, func(x *snug.Tensor) *snug.Tensor {
			ys := snug.BlockN(func(x ...*snug.Tensor) []*snug.Tensor {
				y := n.run("a", x[0])
				return []*snug.Tensor{y, y.Add(x[0]).Tanh()}
			}, []*snug.Tensor{x}, o...)
			return ys[0].AddScalarInPlace(1).Mul(ys[1])
		})
	}
	n := counted{}
	if want, got := grad(counted{}), grad(n, checkpoint.Here(), checkpoint.Keep("a")); !slices.Equal(want, got) || n["a"] != 2 {
		t.Errorf("gradient %v, want %v; %d runs", got, want, n["a"])
	}
}

// Forward leaves no more behind than arguments and what a second run will take: not the
// last product, which nothing reads, and not what was written over.
func TestWhatIsHeld(t *testing.T) {
	const unit = 1 << 20
	held := func(fn func(x *snug.Tensor) *snug.Tensor, o ...snug.Option) (units int64) {
		d, err := snug.Open(testdevice.Dry, snug.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := snug.Zeros(s, snug.Float32, 512, 512).Track()
			before := d.Memory().Stats().Allocated
			snug.Block(fn, x, o...).Free()
			units = (d.Memory().Stats().Allocated - before) / unit
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return units
	}
	last := func(x *snug.Tensor) *snug.Tensor { return x.MatMul(x).Sigmoid().MatMul(x) }
	over := func(x *snug.Tensor) *snug.Tensor { return x.MatMul(x).SigmoidInPlace().MatMul(x) }
	for _, c := range []struct {
		name string
		fn   func(*snug.Tensor) *snug.Tensor
		opts []snug.Option
		want int64
	}{
		{"plain", last, nil, 1},
		{"recomputed", last, []snug.Option{checkpoint.Here()}, 0},
		{"products", last, []snug.Option{checkpoint.Here(), checkpoint.Products()}, 1},
		{"everything", last, []snug.Option{checkpoint.Here(), everything}, 2},
		{"in place", over, []snug.Option{checkpoint.Here(), checkpoint.Products()}, 0},
	} {
		if n := held(c.fn, c.opts...); n != c.want {
			t.Errorf("%s: %d units held, want %d", c.name, n, c.want)
		}
	}
}

// What the second run does not save is free while backward walks through the block: here
// its argument and the kept product.
func TestSharesEndBeforeBackward(t *testing.T) {
	peak := func(o ...snug.Option) int64 {
		d, err := snug.Open(testdevice.Dry, snug.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := snug.Zeros(s, snug.Float32, 512, 512).Track()
			h := x.AddScalar(1)
			y := snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.AddScalar(1).Tanh() }, h, o...)
			h.Free()
			loss := y.Mul(x).Sum()
			y.Free()
			d.Memory().ResetPeak()
			return loss.Backward()
		}); err != nil {
			t.Fatal(err)
		}
		return d.Memory().Stats().Peak.Allocated >> 20
	}
	// x and its gradient, the gradient of the block's result, over which the one before it is
	// written, and then: tanh's result; or, in the second run, the argument, the sum and
	// tanh's result.
	for _, c := range []struct {
		name string
		opts []snug.Option
		want int64
	}{{"plain", nil, 4}, {"recomputed", []snug.Option{checkpoint.Here()}, 6}, {"kept", []snug.Option{checkpoint.Here(), checkpoint.Keep("add scalar")}, 6}} {
		if n := peak(c.opts...); n != c.want {
			t.Errorf("%s: %d units at the peak, want %d", c.name, n, c.want)
		}
	}
}

// A product whose casts alone are read is not computed again.
func TestLastProductUnderAutocast(t *testing.T) {
	requests := func(o ...snug.Option) (n int64) {
		d, err := snug.Open(testdevice.Name, snug.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		l := nn.NewLinear(8, 8, false)
		if err := nn.Init(bg, d, l, snug.NewRand(1)); err != nil {
			t.Fatal(err)
		}
		if err := d.Train(bg, func(s *snug.Scope) error {
			y := snug.Block(func(x *snug.Tensor) *snug.Tensor { return l.Forward(x.Tanh()) }, snug.Upload(s, waves(32, 1), 4, 8), o...)
			loss := y.Sum()
			n = d.Memory().Stats().Requests
			err := loss.Backward()
			n = d.Memory().Stats().Requests - n
			return err
		}, amp.Autocast(snug.BFloat16)); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if plain, again := requests(), requests(checkpoint.Here()); again != plain+3 { // tanh, its cast and the weight's
		t.Errorf("%d allocations in backward, and %d recomputed", plain, again)
	}
}

// Each allocation fails in turn: nothing stays allocated, nothing moves, and the step can
// be had after all.
func TestEveryAllocationOfAPolicyMayFail(t *testing.T) {
	for _, o := range [][]snug.Option{
		{checkpoint.Every(1), checkpoint.Products()},
		{checkpoint.Every(1), everything, away},
		{checkpoint.Every(1), checkpoint.Budget(10 << 10), away},
	} {
		want := newTrained(t, testdevice.Name, newGPT(0.2), tokens(2), o...)
		right, _ := want.run(t, 2)
		r := newTrained(t, testdevice.Name, newGPT(0.2), tokens(2), o...)
		bits := []uint64{}
		if err := r.train(0, &bits); err != nil {
			t.Fatal(err)
		}
		base := r.dev.Memory().Stats().Allocated
		for _, pool := range []*memory.Pool{r.dev.Memory(), r.dev.Host()} {
			failed, stride := 0, 1
			if testing.Short() {
				stride = 7
			}
			for n := 0; ; n += stride {
				pool.FailAt(n)
				err := r.dev.Train(bg, func(s *snug.Scope) error {
					x, y := r.data(s, 1)
					return r.window.Backward(r.loss(r.m.Forward(x), y), 1)
				}, r.opts...)
				pool.FailAt(-1)
				if drop := r.window.Drop(); drop != nil {
					t.Fatal(drop)
				}
				if live := r.dev.Memory().Stats().Allocated - base; live != 0 || r.dev.Host().Stats().Allocated != 0 {
					t.Fatalf("allocation %d: %d bytes are left: %v", n, live, err)
				}
				if err == nil {
					break
				}
				if failed++; !errors.Is(err, memory.ErrOutOfMemory) {
					t.Fatal(n, err)
				}
			}
			if failed == 0 && (pool == r.dev.Memory() || len(o) == 3) {
				t.Error("nothing was allocated")
			}
		}
		if err := r.train(1, &bits); err != nil {
			t.Fatal(err)
		}
		if n := differ(right, r.state(t, bits)); n != 0 {
			t.Errorf("%d of %d values differ after failures", n, len(right))
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	runs := 0
	for _, c := range []struct {
		says string
		fn   func(x *snug.Tensor) *snug.Tensor
		opts []snug.Option
	}{
		{"a checkpoint policy without a function", (*snug.Tensor).Tanh, []snug.Option{checkpoint.Policy(nil)}},
		{"two options for a checkpoint policy", (*snug.Tensor).Tanh, []snug.Option{checkpoint.Products(), everything}},
		{"the block's second run has other operations", func(x *snug.Tensor) *snug.Tensor {
			if runs++; runs == 1 {
				return x.Tanh()
			}
			return x.Sigmoid()
		}, []snug.Option{checkpoint.Here(), everything}},
		{`keeps the results of "tahn", and no operation of that name makes one in a recomputed block; there are: sigmoid, tanh, at policy_test.go:`,
			func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Sigmoid().Reshape(2, 2) }, []snug.Option{checkpoint.Here(), checkpoint.Keep("tanh", "tahn")}},
	} {
		err := d.Train(bg, func(s *snug.Scope) error {
			return snug.Block(c.fn, snug.Upload(s, waves(4, 1), 4).Track(), c.opts...).Sum().Backward()
		})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
		if n := d.Memory().Stats().Allocated; n != 0 {
			t.Errorf("%s: %d bytes leak", c.says, n)
		}
	}
	func() { // a panic in the policy passes through
		defer func() {
			if p := recover(); fmt.Sprint(p) != "on purpose" || d.Memory().Stats().Allocated != 0 {
				t.Error(p, d.Memory().Stats().Allocated)
			}
		}()
		d.Train(bg, func(s *snug.Scope) error {
			asked := 0
			snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Tanh() }, snug.Upload(s, waves(4, 1), 4).Track(), checkpoint.Here(),
				checkpoint.Policy(func(string, []int, snug.DType, int64) bool {
					if asked++; asked == 2 {
						panic("on purpose")
					}
					return true
				}))
			return nil
		})
	}()
}
