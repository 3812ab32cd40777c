package models_test

import (
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// A saver is one way to need less memory. Zero fields leave what the plain run does.
type saver struct {
	name  string
	exact bool // the plain run's bits; else a bounded difference
	// Savers that turn one knob twice cannot be combined.
	options   map[string]snug.Option
	micro     int // micro-batches
	inside    bool
	chunked   bool // the loss of a model that has such a head
	optimizer func(iter.Seq2[string, *snug.Param]) (optim.Optimizer, error)
	config    func(*snug.Config)
	place     func(d *snug.Device, m any) error // between Init and the optimizer
	bound     float64                           // of an inexact one: how far parameters are from the plain run's, relative
}

var savers = []saver{
	{name: "checkpoint", exact: true, options: map[string]snug.Option{"recompute": checkpoint.Every(1)}},
	{name: "checkpoint every 2nd", exact: true, options: map[string]snug.Option{"recompute": checkpoint.Every(2)}},
	{name: "checkpoint, products kept", exact: true, options: map[string]snug.Option{"recompute": checkpoint.Every(1), "keep": checkpoint.Products()}},
	{name: "checkpoint, 8 KiB kept", exact: true, options: map[string]snug.Option{"recompute": checkpoint.Every(1), "keep": checkpoint.Budget(8 << 10)}},
	{name: "recipes off", exact: true, options: map[string]snug.Option{"recipes": snug.NoRecipes()}},
	{name: "offload", exact: true, options: map[string]snug.Option{"offload": offload.Activations(offload.Config{MinBytes: 1})}},
	{name: "offload to a file", exact: true, options: map[string]snug.Option{"offload": offload.Activations(offload.Config{MinBytes: 1, Dir: os.TempDir()})}},
	{name: "state on the host", exact: true, place: func(d *snug.Device, _ any) error { offload.State(d, offload.OnHost); return nil }},
	{name: "state streamed", exact: true, place: func(d *snug.Device, _ any) error { offload.State(d, offload.Streamed); return nil }},
	{name: "gradients on the host", exact: true, place: func(_ *snug.Device, m any) error { offload.Grads(nn.Params(m)); return nil }},
	{name: "adafactor", optimizer: func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
		return optim.NewAdafactor(p, optim.DefaultAdafactor())
	}, bound: 1},
	{name: "parameters on the host", exact: true, place: func(_ *snug.Device, m any) error { return offload.Params(nn.Params(m)) }},
	{name: "parameters on the host, ahead", exact: true, options: map[string]snug.Option{"offload": offload.Activations(offload.Config{MinBytes: 1 << 40, AheadBytes: 4 << 10})},
		place: func(_ *snug.Device, m any) error { return offload.Params(nn.Params(m)) }},
	{name: "backward step", exact: true, inside: true},
	{name: "cache trimmed", exact: true, place: func(d *snug.Device, _ any) error { d.Memory().SetTrim(16 << 10); return nil }},
	{name: "one thread", exact: true, config: func(c *snug.Config) { c.Threads = 1 }},
	{name: "accumulate 2", micro: 2, bound: 0.05},
	{name: "chunked head", chunked: true, bound: 1e-4},
	{name: "bfloat16", options: map[string]snug.Option{"autocast": amp.Autocast(snug.BFloat16)}, bound: 0.05},
	{name: "moments of bfloat16", optimizer: adamWith(snug.BFloat16), bound: 0.01},
	{name: "moments of 8 bits", optimizer: adamWith(snug.Uint8), bound: 0.01},
}

func adamWith(state snug.DType) func(iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
	return func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
		c := optim.DefaultAdamW()
		c.StateDType = state
		return optim.NewAdamW(p, c)
	}
}

// and is both at once, or why that cannot be.
func (a saver) and(b saver) (saver, string) {
	c := saver{name: a.name + " + " + b.name, exact: a.exact && b.exact, options: map[string]snug.Option{}, inside: a.inside || b.inside, chunked: a.chunked || b.chunked}
	for _, s := range []saver{a, b} {
		for knob, o := range s.options {
			if _, ok := c.options[knob]; ok {
				return c, "both set " + knob
			}
			c.options[knob] = o
		}
		if s.micro != 0 {
			if c.micro != 0 {
				return c, "both accumulate"
			}
			c.micro = s.micro
		}
		if s.optimizer != nil {
			if c.optimizer != nil {
				return c, "both choose the optimizer"
			}
			c.optimizer = s.optimizer
		}
	}
	c.place = func(d *snug.Device, m any) error {
		for _, s := range []saver{a, b} {
			if s.place == nil {
				continue
			}
			if err := s.place(d, m); err != nil {
				return err
			}
		}
		return nil
	}
	c.config = func(to *snug.Config) {
		for _, s := range []saver{a, b} {
			if s.config != nil {
				s.config(to)
			}
		}
	}
	return c, ""
}

// subjects are small models with what savers can get wrong: dropout, batch norm, a tied
// weight, skip connections, writes in place.
var subjects = map[string]struct {
	model func() nn.Layer
	batch func(s *snug.Scope, step, from, to int) (x, y *snug.Tensor)
}{
	"mlp": {func() nn.Layer {
		return &blocks{[]nn.Layer{
			nn.Sequential{nn.NewLinear(12, 64, true), nn.NewBatchNorm(64), nn.ReLU, nn.NewDropout(0.3)},
			nn.Sequential{nn.NewLinear(64, 64, true), nn.GELU, nn.NewDropout(0.3)},
			nn.NewLinear(64, 5, true),
		}}
	}, images(5, 12)},
	"resnet": {func() nn.Layer {
		return models.NewResNet(models.ResNetConfig{Blocks: []int{1, 1}, Width: 4, Channels: 3, Classes: 5, SmallStem: true})
	}, images(5, 3, 8, 8)},
	"gpt": {func() nn.Layer {
		return models.NewGPT(models.GPTConfig{Vocabulary: 11, Context: 6, Width: 8, Heads: 2, Layers: 2, Dropout: 0.2, Tied: true})
	}, func(s *snug.Scope, step, from, to int) (x, y *snug.Tensor) {
		n := (to - from) * 6
		in, out := make([]int64, n), make([]int64, n)
		for i := range n {
			in[i], out[i] = int64((i+6*from)*(step+3)%11), int64((i+6*from+1)*(step+3)%11)
		}
		return snug.Upload(s, in, to-from, 6), snug.Upload(s, out, to-from, 6)
	}},
}

// blocks runs each layer in a Block.
type blocks struct{ Layers []nn.Layer }

func (m *blocks) Forward(x *snug.Tensor) *snug.Tensor {
	for _, l := range m.Layers {
		x = snug.Block(l.Forward, x)
	}
	return x
}

func images(classes int, shape ...int) func(s *snug.Scope, step, from, to int) (x, y *snug.Tensor) {
	size := 1
	for _, d := range shape {
		size *= d
	}
	return func(s *snug.Scope, step, from, to int) (x, y *snug.Tensor) {
		v, l := make([]float32, (to-from)*size), make([]int64, to-from)
		for i := range v {
			v[i] = float32(math.Sin(float64((i+from*size)*(step+2)) * 0.37))
		}
		for i := range l {
			l[i] = int64((i + from + step) % classes)
		}
		return snug.Upload(s, v, append([]int{to - from}, shape...)...), snug.Upload(s, l, to-from)
	}
}

func (v saver) loss(m nn.Layer, x, y *snug.Tensor) *snug.Tensor {
	if gpt, ok := m.(*models.GPT); ok && v.chunked {
		c := nn.DefaultLinearCrossEntropy()
		c.ChunkBytes = 7 * 11 * 4 // seven rows of logits
		loss, _ := c.Loss(gpt.Hidden(x), gpt.Head.Weight, nil, y)
		return loss
	}
	return nn.CrossEntropy(m.Forward(x), y)
}

const samples = 8

// outcome is all that a run of five steps leaves.
type outcome struct {
	bits          []uint64 // parameters, optimizer state, buffers, random position
	params        []float64
	device, extra memory.Stats
}

func train(t *testing.T, device, subject string, v saver) outcome {
	t.Helper()
	c := snug.Config{LimitBytes: 1 << 30, Threads: 2}
	if v.config != nil {
		v.config(&c)
	}
	d, err := snug.Open(device, c)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rng, m := snug.NewRand(3), subjects[subject].model()
	if err := nn.Init(bg, d, m, rng); err != nil {
		t.Fatal(err)
	}
	if v.place != nil {
		if err := v.place(d, m); err != nil {
			t.Fatal(err)
		}
	}
	make := v.optimizer
	if make == nil {
		make = func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
			return optim.NewAdamW(p, optim.DefaultAdamW())
		}
	}
	o, err := make(nn.Params(m))
	if err != nil {
		t.Fatal(err)
	}
	w := optim.NewWindow(o, optim.WindowConfig{})
	options := []snug.Option{snug.Random(rng)}
	for _, o := range v.options {
		options = append(options, o)
	}
	before, beforeHost := d.Memory().Stats().Allocated, d.Host().Stats().Allocated
	micro := max(1, v.micro)
	for step := range 5 {
		for k := range micro {
			if err := d.Train(bg, func(s *snug.Scope) error {
				x, y := subjects[subject].batch(s, step, k*samples/micro, (k+1)*samples/micro)
				loss := v.loss(m, x, y)
				if v.inside && k == micro-1 {
					_, err := w.BackwardStep(loss, float64(samples/micro))
					return err
				}
				return w.Backward(loss, float64(samples/micro))
			}, options...); err != nil {
				t.Fatalf("%s, %s: %v", subject, v.name, err)
			}
		}
		if !v.inside {
			if _, err := w.Step(); err != nil {
				t.Fatalf("%s, %s: %v", subject, v.name, err)
			}
		}
	}
	r := outcome{device: d.Memory().Stats(), extra: d.Host().Stats()}
	if r.device.Allocated != before || r.extra.Allocated != beforeHost {
		t.Errorf("%s, %s: %d bytes leak, %d on the host", subject, v.name, r.device.Allocated-before, r.extra.Allocated-beforeHost)
	}
	if strings.HasPrefix(device, "dry:") {
		return r
	}
	for _, ps := range []iter.Seq2[string, *snug.Param]{nn.Params(m), o.State()} {
		for _, p := range ps {
			values, err := snug.GetParam[float64](p)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range values {
				r.bits = append(r.bits, math.Float64bits(x))
			}
		}
	}
	for _, p := range o.Params() {
		values, err := snug.GetParam[float64](p)
		if err != nil {
			t.Fatal(err)
		}
		r.params = append(r.params, values...)
	}
	r.bits = append(r.bits, rng.Position())
	return r
}

func differing(a, b []uint64) int {
	if len(a) != len(b) {
		return max(len(a), len(b))
	}
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// Savers change no bit, or differ by a stated bound; a pair with one inexact member is that
// member, in every bit; and a dry run predicts them all. The full tests take every pair,
// the others a seeded sample.
func TestSavers(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for subject := range subjects {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			plain := train(t, testdevice.Name, subject, saver{name: "plain"})
			alone := map[string]outcome{}
			savers := savers
			if subject != "gpt" {
				savers = slices.DeleteFunc(slices.Clone(savers), func(v saver) bool { return v.chunked })
			}
			for _, v := range savers {
				r := train(t, testdevice.Name, subject, v)
				alone[v.name] = r
				n := differing(plain.bits, r.bits)
				switch d := distance(r.params, plain.params) / norm(plain.params); {
				case v.exact && n != 0:
					t.Errorf("%s: %d of %d values differ from the plain run's", v.name, n, len(r.bits))
				case !v.exact && !(d <= v.bound):
					t.Errorf("%s: parameters differ by %g, at most %g stated", v.name, d, v.bound)
				case !v.exact && n == 0 && (subject == "mlp" || v.name != "moments of 8 bits"): // of small parameters they are not
					t.Errorf("%s: does nothing", v.name)
				}
				predict(t, subject, v, r)
			}
			for i, a := range savers {
				for _, b := range savers[:i] {
					if testing.Short() {
						break
					}
					if os.Getenv("SNUG_FULL") == "" && chance.IntN(5) > 0 {
						continue
					}
					v, why := a.and(b)
					if why != "" {
						continue // two values of one knob
					}
					r := train(t, testdevice.Name, subject, v)
					predict(t, subject, v, r)
					want := plain
					switch {
					case a.exact && !b.exact:
						want = alone[b.name]
					case b.exact && !a.exact:
						want = alone[a.name]
					case !a.exact && !b.exact:
						continue
					}
					if n := differing(want.bits, r.bits); n != 0 {
						t.Errorf("%s: %d of %d values differ", v.name, n, len(r.bits))
					}
				}
			}
		})
	}
}

// More savers than two, three of them or all that go together: what is exact among them
// changes no bit of what the others do without it. Which ones is a seeded sample, of which
// the full tests take more.
func TestManySavers(t *testing.T) {
	if testing.Short() {
		t.Skip("pairs are enough")
	}
	triples, all := 12, 2
	if os.Getenv("SNUG_FULL") != "" {
		triples, all = 150, 20
	}
	for subject := range subjects {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(3, 4))
			without := map[string]outcome{} // exact savers, by the others' names
			for i := range triples + all {
				most := 3
				if i >= triples {
					most = len(savers)
				}
				v, rest, n := saver{name: "plain", exact: true}, saver{name: "plain", exact: true}, 0
				for _, k := range chance.Perm(len(savers)) {
					s := savers[k]
					both, why := v.and(s)
					if why != "" || n == most || s.chunked && subject != "gpt" {
						continue
					}
					if v, n = both, n+1; !s.exact {
						rest, _ = rest.and(s)
					}
				}
				want, ok := without[rest.name]
				if !ok {
					want = train(t, testdevice.Name, subject, rest)
					without[rest.name] = want
				}
				r := train(t, testdevice.Name, subject, v)
				predict(t, subject, v, r)
				if n := differing(want.bits, r.bits); n != 0 {
					t.Errorf("%s: %d of %d values differ from those of %s", v.name, n, len(r.bits), rest.name)
				}
			}
		})
	}
}

func predict(t *testing.T, subject string, v saver, measured outcome) {
	t.Helper()
	p := train(t, testdevice.Dry, subject, v)
	if d := cmp.Diff(p.device, measured.device) + cmp.Diff(p.extra, measured.extra); d != "" {
		t.Errorf("%s: predicted (-) and measured (+):\n%s", v.name, d)
	}
}

// Two options for one thing are refused, by name.
func TestContradictions(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 26})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, a := range savers {
		for _, b := range savers[:i] {
			if _, why := a.and(b); !strings.HasPrefix(why, "both set ") {
				continue
			}
			var o []snug.Option
			for _, s := range []saver{a, b} {
				for _, v := range s.options {
					o = append(o, v)
				}
			}
			if err := d.Train(bg, func(*snug.Scope) error { return nil }, o...); err == nil || !strings.Contains(err.Error(), "two options for") {
				t.Errorf("%s and %s: %v", a.name, b.name, err)
			}
		}
	}
}
