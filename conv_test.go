package snug_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	values "github.com/snug-ml/snug/internal/golden"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optest"
)

// conv is with as much of a bias as there are operands.
func conv(c snug.Conv2DConfig) func(x ...*snug.Tensor) *snug.Tensor {
	return func(x ...*snug.Tensor) *snug.Tensor {
		if len(x) == 2 {
			return x[0].Conv2D(x[1], nil, c)
		}
		return x[0].Conv2D(x[1], x[2], c)
	}
}

func TestConv2D(t *testing.T) {
	f := values.Load(t, "layers")
	for _, name := range f.Cases() {
		if !strings.HasPrefix(name, "conv2d_") {
			continue
		}
		set := func(key string) int { return int(f.Settings(name)[key].(float64)) }
		c := snug.Conv2DConfig{Stride: set("stride"), Padding: set("padding"), Dilation: set("dilation"), Groups: set("groups")}
		optest.Run(t, optest.Op{Name: name, F: conv(c), Reference: golden(t, "layers", name)})
	}
	for _, c := range []struct {
		name   string
		config snug.Conv2DConfig
		shapes [][]int
	}{
		{"3 by 3", snug.Conv2DConfig{Stride: 1, Padding: 1, Dilation: 1, Groups: 1}, [][]int{{2, 2, 4, 5}, {3, 2, 3, 3}, {3}}},
		{"no bias", snug.Conv2DConfig{Stride: 2, Padding: 1, Dilation: 1, Groups: 1}, [][]int{{2, 3, 5, 4}, {2, 3, 3, 3}}},
		{"pointwise", snug.DefaultConv2D(), [][]int{{2, 3, 3, 2}, {4, 3, 1, 1}, {4}}},
		{"pointwise by 2", snug.Conv2DConfig{Stride: 2, Dilation: 1, Groups: 1}, [][]int{{1, 3, 5, 4}, {2, 3, 1, 1}, {2}}},
		{"dilated", snug.Conv2DConfig{Stride: 1, Padding: 2, Dilation: 2, Groups: 1}, [][]int{{1, 2, 5, 4}, {2, 2, 3, 2}, {2}}},
		{"stride 3, dilation 2", snug.Conv2DConfig{Stride: 3, Padding: 2, Dilation: 2, Groups: 1}, [][]int{{1, 2, 8, 7}, {2, 2, 3, 3}, {2}}},
		{"groups", snug.Conv2DConfig{Stride: 2, Padding: 1, Dilation: 1, Groups: 2}, [][]int{{2, 4, 4, 5}, {6, 2, 3, 3}, {6}}},
		{"depthwise", snug.Conv2DConfig{Stride: 1, Padding: 1, Dilation: 1, Groups: 3}, [][]int{{2, 3, 4, 3}, {3, 1, 3, 3}, {3}}},
		{"one pixel", snug.DefaultConv2D(), [][]int{{1, 1, 1, 1}, {1, 1, 1, 1}, {1}}},
		{"padding alone is read", snug.Conv2DConfig{Stride: 4, Padding: 3, Dilation: 1, Groups: 1}, [][]int{{1, 1, 2, 2}, {1, 1, 2, 2}, {1}}},
		{"no sample", snug.Conv2DConfig{Stride: 1, Padding: 1, Dilation: 1, Groups: 1}, [][]int{{0, 2, 4, 5}, {3, 2, 3, 3}, {3}}},
		{"no channel", snug.Conv2DConfig{Stride: 1, Padding: 1, Dilation: 1, Groups: 1}, [][]int{{2, 0, 4, 5}, {3, 0, 3, 3}, {3}}},
		{"no filter", snug.Conv2DConfig{Stride: 1, Padding: 1, Dilation: 1, Groups: 1}, [][]int{{2, 2, 4, 5}, {0, 2, 3, 3}, {0}}},
	} {
		optest.Run(t, optest.Op{Name: c.name, F: conv(c.config), Shapes: [][][]int{c.shapes}})
	}
	optest.Run(t, optest.Op{
		Name: "large", F: conv(snug.Conv2DConfig{Stride: 2, Padding: 1, Dilation: 1, Groups: 2}),
		Shapes: [][][]int{{{1, 2, 1, 1}, {2, 1, 3, 3}, {2}}},
		Large:  [][]int{{3, 24, 33, 31}, {40, 12, 3, 3}, {40}},
	})
}

func TestConv2DRefuses(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	one := snug.DefaultConv2D()
	for _, c := range []struct {
		config snug.Conv2DConfig
		shapes [3][]int
	}{
		{snug.Conv2DConfig{}, [3][]int{{1, 2, 4, 4}, {3, 2, 3, 3}, {3}}},
		{one, [3][]int{{1, 2, 4, 4}, {3, 1, 3, 3}, {3}}},
		{one, [3][]int{{1, 2, 4, 4}, {3, 2, 5, 3}, {3}}},
		{one, [3][]int{{1, 2, 4, 4}, {3, 2, 3, 3}, {2}}},
		{one, [3][]int{{2, 4, 4}, {3, 2, 3, 3}, {3}}},
		{snug.Conv2DConfig{Stride: 1, Dilation: 1, Groups: 2}, [3][]int{{1, 2, 4, 4}, {3, 1, 3, 3}, {3}}},
	} {
		err := d.Infer(t.Context(), func(s *snug.Scope) error {
			var in []*snug.Tensor
			for _, shape := range c.shapes {
				in = append(in, snug.Zeros(s, snug.Float32, shape...))
			}
			in[0].Conv2D(in[1], in[2], c.config)
			return nil
		})
		if err == nil {
			t.Errorf("no error for %v of %v", c.config, c.shapes)
		}
	}
	err = d.Infer(t.Context(), func(s *snug.Scope) error {
		snug.Zeros(s, snug.BFloat16, 1, 2, 4, 4).Conv2D(snug.Zeros(s, snug.Float32, 3, 2, 3, 3), nil, one)
		return nil
	})
	if !errors.Is(err, snug.ErrDType) {
		t.Errorf("of two types: %v, want %v", err, snug.ErrDType)
	}
}

func TestConvTranspose2D(t *testing.T) {
	transpose := func(c snug.Conv2DConfig, out int) func(x ...*snug.Tensor) *snug.Tensor {
		return func(x ...*snug.Tensor) *snug.Tensor {
			if len(x) == 2 {
				return x[0].ConvTranspose2D(x[1], nil, c, out)
			}
			return x[0].ConvTranspose2D(x[1], x[2], c, out)
		}
	}
	optest.Run(t, optest.Op{
		Name:      "conv transpose",
		F:         transpose(snug.Conv2DConfig{Stride: 2, Padding: 1, Dilation: 1, Groups: 1}, 1),
		Shapes:    [][][]int{{{2, 3, 3, 2}, {3, 2, 3, 3}, {2}}, {{1, 1, 1, 1}, {1, 1, 3, 3}, {1}}, {{0, 1, 2, 2}, {1, 2, 3, 3}, {2}}},
		Large:     [][]int{{3, 24, 16, 17}, {24, 20, 3, 3}, {20}},
		Reference: golden(t, "layers", "conv_transpose2d"),
	})
	optest.Run(t, optest.Op{
		Name: "groups and dilation", F: transpose(snug.Conv2DConfig{Stride: 1, Padding: 1, Dilation: 2, Groups: 2}, 0),
		Shapes: [][][]int{{{2, 4, 3, 4}, {4, 3, 3, 2}}},
	})
}

// A filter of ones adds up each window.
func ExampleTensor_Conv2D() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 3, 3)
		w := snug.Full(s, 1, snug.Float32, 1, 1, 2, 2)
		fmt.Println(x.Conv2D(w, nil, snug.DefaultConv2D()))
		return nil
	})
	// Output:
	// float32[1 1 2 2] on cpu mean 20 std 7.303 [12 16 24 28]

}

type kernel struct{ Weight *snug.Param }

// A second gradient of weights is summed where the first one is, and float32 weights serve a
// convolution in 16 bits.
func TestConv2DHoldsItsWeightsOnce(t *testing.T) {
	testdevice.CPU(t, "only its kernels can")
	d, err := snug.Open(testdevice.Dry, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l := &kernel{snug.NewParam(snug.Const(1), 256, 256, 3, 3)}
	if err := nn.Init(context.Background(), d, l, nil); err != nil {
		t.Fatal(err)
	}
	defer nn.Close(l)
	const bytes = 256 * 256 * 9 * 4
	one := snug.DefaultConv2D()
	one.Padding = 1
	for i, want := range []int64{bytes, 0} {
		d.Memory().ResetPeak()
		if err := d.Train(context.Background(), func(s *snug.Scope) error {
			return snug.Zeros(s, snug.Float32, 1, 256, 2, 2).Conv2D(l.Weight, nil, one).Sum().Backward()
		}, amp.Autocast(snug.BFloat16)); err != nil {
			t.Fatal(err)
		}
		s := d.Memory().Stats()
		if n := s.Peaks[memory.Casts]; n != 0 {
			t.Errorf("casts of %d bytes", n)
		}
		if n := s.Peaks[memory.Flowing]; n < want || n >= want+bytes/2 {
			t.Errorf("pass %d: flowing gradients of %d bytes, want %d", i, n, want)
		}
	}
}
