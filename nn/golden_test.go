package nn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	values "github.com/snug-ml/snug/internal/golden"
	"github.com/snug-ml/snug/nn"
)

// trainable makes the layer of a case of PyTorch's values, with parameters to be set.
func trainable(f *values.Family, name string) nn.Layer {
	set := func(key string) int { return int(f.Settings(name)[key].(float64)) }
	shape := func(role string) []int { a, _ := f.Tensor(name, role); return a.Shape }
	switch w := shape("w.weight"); {
	case strings.HasPrefix(name, "conv2d"):
		c := nn.DefaultConv2D(w[1]*set("groups"), w[0], w[2])
		c.Stride, c.Padding, c.Dilation, c.Groups = set("stride"), set("padding"), set("dilation"), set("groups")
		return nn.NewConv2D(c)
	case name == "conv_transpose2d":
		c := nn.DefaultConv2D(w[0], w[1], w[2])
		c.Stride, c.Padding = set("stride"), set("padding")
		return nn.NewConvTranspose2D(c, set("output_padding"))
	case strings.HasPrefix(name, "batchnorm"):
		return nn.NewBatchNorm(w[0])
	case name == "layernorm":
		return nn.NewLayerNorm(w...)
	case strings.HasPrefix(name, "groupnorm"):
		return nn.NewGroupNorm(set("groups"), w[0])
	case name == "linear":
		return nn.NewLinear(w[1], w[0], true)
	case name == "embedding_padding_idx":
		return nn.NewPaddedEmbedding(w[0], w[1], set("padding_idx"))
	case name == "embedding":
		return nn.NewEmbedding(w[0], w[1])
	}
	return nil
}

var pools = map[string]nn.Layer{
	"maxpool_k3s2p1":       nn.NewMaxPool2D(3, 2, 1),
	"maxpool_k2s2_ceil":    &nn.MaxPool2D{Kernel: 2, Stride: 2, Ceil: true},
	"avgpool_k3s2p1":       nn.NewAvgPool2D(3, 2, 1),
	"adaptive_avgpool_1":   nn.NewAdaptiveAvgPool2D(1, 1),
	"adaptive_avgpool_3x4": nn.NewAdaptiveAvgPool2D(3, 4),
}

// Every layer gives PyTorch's results, gradients and, of batch norm, running statistics.
func TestLayers(t *testing.T) {
	f := values.Load(t, "layers")
	for _, name := range f.Cases() {
		if strings.HasPrefix(name, "attention") { // snug's tests have it: it is no layer
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := trainable(f, name)
			if l == nil {
				if l = pools[name]; l == nil {
					t.Fatal("no layer")
				}
			}
			checkLayer(t, f, name, l)
		})
	}
}

func checkLayer(t *testing.T, f *values.Family, name string, l nn.Layer) {
	near := func(what, role string, got *snug.Tensor) {
		t.Helper()
		want, ok := f.Tensor(name, role)
		if !ok {
			t.Fatalf("no %s", role)
		}
		v, err := snug.Download[float64](got)
		if err != nil {
			t.Fatal(err)
		}
		var diff, norm float64
		for i, w := range want.F {
			diff += (v[i] - w) * (v[i] - w)
			norm += w * w
		}
		if !(math.Sqrt(diff) <= 1e-5*(1+math.Sqrt(norm))) {
			t.Errorf("%s: ‖got−want‖ is %g for ‖want‖ = %g", what, math.Sqrt(diff), math.Sqrt(norm))
		}
	}
	d := open(t)
	init := map[string]*snug.Param{}
	for n, p := range nn.Params(l) {
		init[n] = p
	}
	if len(init) > 0 {
		if err := nn.Init(t.Context(), d, l, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n, p := range init {
		role := n
		if !p.IsBuffer() {
			role = "w." + n
		}
		a, ok := f.Tensor(name, role)
		if !ok && n != "num_batches_tracked" {
			t.Fatalf("no %s", role)
		} else if ok {
			if err := snug.SetParam(p, float32s(a.F)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var opts []snug.Option
	if strings.HasSuffix(name, "_eval") {
		opts = append(opts, snug.Eval())
	}
	in, _ := f.Tensor(name, "in0")
	g, _ := f.Tensor(name, "g")
	err := d.Train(t.Context(), func(s *snug.Scope) error {
		var x *snug.Tensor
		if in.F != nil {
			x = snug.Upload(s, float32s(in.F), in.Shape...).Track()
		} else {
			x = snug.Upload(s, in.I, in.Shape...)
		}
		y := l.Forward(x).Keep()
		if err := y.Mul(snug.Upload(s, float32s(g.F), g.Shape...)).Sum().Backward(); err != nil {
			return err
		}
		near("result", "out0", y)
		if in.F != nil {
			near("gradient of x", "gin0", x.Grad())
		}
		return nil
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Infer(t.Context(), func(s *snug.Scope) error {
		for n, p := range init {
			if !p.IsBuffer() {
				near("gradient of "+n, "gw."+n, p.Grad(s))
			}
		}
		if strings.HasPrefix(name, "batchnorm") && len(opts) == 0 {
			near("running mean", "out1", init["running_mean"].In(s))
			near("running variance", "out2", init["running_var"].In(s))
			if n, err := init["num_batches_tracked"].In(s).Item(); n != 1 || err != nil {
				t.Errorf("%v batches tracked, want 1; %v", n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func float32s(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}
