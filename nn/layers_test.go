package nn_test

import (
	ctx "context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
)

// A Sequential's parameters are named by number, and shapes follow from layer to layer.
func ExampleSequential() {
	net := nn.Sequential{
		nn.NewConv2D(nn.DefaultConv2D(3, 8, 3)), nn.NewBatchNorm(8), nn.ReLU,
		nn.NewMaxPool2D(2, 2, 0), nn.NewFlatten(), nn.NewLinear(8*7*7, 10, true),
	}
	for name, p := range nn.Params(net) {
		fmt.Println(name, p.Shape())
	}
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	bg := ctx.Background()
	if err := nn.Init(bg, d, net, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	err = d.Infer(bg, func(s *snug.Scope) error {
		fmt.Println(net.Forward(snug.Zeros(s, snug.Float32, 2, 3, 16, 16)).Shape())
		return nil
	})
	fmt.Println(err)
	// Output:
	// 0.weight [8 3 3 3]
	// 0.bias [8]
	// 1.weight [8]
	// 1.bias [8]
	// 1.running_mean [8]
	// 1.running_var [8]
	// 1.num_batches_tracked []
	// 5.weight [10 392]
	// 5.bias [10]
	// [2 10]
	// <nil>
}

// What a layer of a Sequential made is freed once the next has read it.
func TestSequentialFrees(t *testing.T) {
	d := open(t)
	net := nn.Sequential{nn.Tanh, nn.Tanh, nn.Tanh, nn.Tanh}
	const n = 1 << 16
	peak := func(f func(x *snug.Tensor) *snug.Tensor) int64 {
		d.Memory().ResetPeak()
		err := d.Infer(t.Context(), func(s *snug.Scope) error {
			f(snug.Zeros(s, snug.Float32, n))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return d.Memory().Stats().Peak.Allocated
	}
	if got := peak(net.Forward); got != 3*4*n { // x, and two results at a time
		t.Errorf("%d bytes at once, want those of 3 tensors of %d", got, 4*n)
	}
	// One that was kept, and one that is a view of an earlier one, stay readable.
	var kept *snug.Tensor
	net = nn.Sequential{nn.Tanh, nn.Func(func(x *snug.Tensor) *snug.Tensor { kept = x.Tanh().Keep(); return kept }), nn.Tanh}
	err := d.Infer(t.Context(), func(s *snug.Scope) error {
		one := nn.Sequential{nn.Func(func(x *snug.Tensor) *snug.Tensor { return x }), nn.NewFlatten(), nn.NewDropout(0.5)}
		x := snug.Full(s, 1, snug.Float32, 2, 3, 2)
		y, err := snug.Download[float32](one.Forward(x))
		if !slices.Equal(y, []float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}) {
			t.Error(y, err)
		}
		if _, err = snug.Download[float32](x); err != nil {
			return err
		}
		net.Forward(x)
		_, err = snug.Download[float32](kept)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// First values are PyTorch's: uniform up to 1/√(fan-in), and a padding row of zeros.
func TestFirstValues(t *testing.T) {
	d := open(t)
	conv := nn.DefaultConv2D(8, 32, 3)
	conv.Groups = 2
	m := struct {
		Linear    *nn.Linear
		Conv      *nn.Conv2D
		Transpose *nn.ConvTranspose2D
		Embedding *nn.Embedding
	}{nn.NewLinear(100, 50, true), nn.NewConv2D(conv), nn.NewConvTranspose2D(conv, 0), nn.NewPaddedEmbedding(20, 10, 3)}
	if err := nn.Init(t.Context(), d, &m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	err := d.Infer(t.Context(), func(s *snug.Scope) error {
		for _, c := range []struct {
			p     *snug.Param
			bound float64
		}{
			{m.Linear.Weight, 0.1}, {m.Linear.Bias, 0.1},
			{m.Conv.Weight, 1. / 6}, {m.Conv.Bias, 1. / 6}, {m.Transpose.Weight, 1. / 12}, {m.Transpose.Bias, 1. / 12},
		} {
			v, err := snug.Download[float64](c.p.In(s))
			if err != nil {
				return err
			}
			var most float64
			for _, x := range v {
				most = max(most, math.Abs(x))
			}
			if !(most <= c.bound && most > 0.8*c.bound) {
				t.Errorf("%s up to %g, want %g", c.p.Name(), most, c.bound)
			}
		}
		v, err := snug.Download[float32](m.Embedding.Weight.In(s))
		for i, x := range v {
			if padding := i/10 == 3; padding != (x == 0) {
				t.Errorf("row %d has %g", i/10, x)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A layer without bias has no such parameter and trains.
func TestWithoutBias(t *testing.T) {
	conv := nn.DefaultConv2D(2, 3, 1)
	conv.Bias = false
	m := nn.Sequential{nn.NewConv2D(conv), nn.NewConvTranspose2D(nn.Conv2DConfig{In: 3, Out: 2, Kernel: 1, Conv2DConfig: snug.DefaultConv2D()}, 0), nn.NewFlatten(), nn.NewLinear(8, 1, false)}
	var names []string
	for n := range nn.Params(m) {
		names = append(names, n)
	}
	if !slices.Equal(names, []string{"0.weight", "1.weight", "3.weight"}) {
		t.Error(names)
	}
	d := open(t)
	if err := nn.Init(t.Context(), d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	err := d.Train(t.Context(), func(s *snug.Scope) error {
		return m.Forward(snug.Full(s, 1, snug.Float32, 1, 2, 2, 2)).Sum().Backward()
	})
	for n, p := range nn.Params(m) {
		if !p.HasGrad() {
			t.Errorf("%s has no gradient; %v", n, err)
		}
	}
}

// A place of causal attention does not depend on those after it.
func TestCausalSelfAttention(t *testing.T) {
	d, l := open(t), nn.NewCausalSelfAttention(8, 2)
	if err := nn.Init(t.Context(), d, l, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	err := d.Infer(t.Context(), func(s *snug.Scope) error {
		x := snug.RandNormal(s, snug.Float32, 2, 5, 8)
		all, err := snug.Download[float32](l.Forward(x).Slice(snug.All, snug.Range{To: 3}))
		if err != nil {
			return err
		}
		some, err := snug.Download[float32](l.Forward(x.Slice(snug.All, snug.Range{To: 3})))
		for i, v := range all {
			if diff := v - some[i]; !(-1e-6 <= diff && diff <= 1e-6) {
				t.Fatalf("element %d is %g, and without later places %g", i, v, some[i])
			}
		}
		return err
	}, snug.Random(snug.NewRand(2)))
	if err != nil {
		t.Error(err)
	}
}
