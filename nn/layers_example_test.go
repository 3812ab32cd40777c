package nn_test

import (
	bg "context"
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
)

// Leading dimensions are the batch.
func ExampleLinear() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	l := nn.NewLinear(4, 3, true)
	ctx := bg.Background()
	if err := nn.Init(ctx, d, l, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	d.Infer(ctx, func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Zeros(s, snug.Float32, 8, 16, 4)).Shape())
		return nil
	})
	// Output:
	// [8 16 3]

}

// The default config is changed where it does not fit.
func ExampleConv2D() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	c := nn.DefaultConv2D(3, 64, 7)
	c.Stride, c.Padding, c.Bias = 2, 3, false
	l := nn.NewConv2D(c)
	ctx := bg.Background()
	if err := nn.Init(ctx, d, l, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	d.Infer(ctx, func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Zeros(s, snug.Float32, 2, 3, 32, 32)).Shape())
		return nil
	})
	// Output:
	// [2 64 16 16]

}

// Out of training x is normalized by the running mean and variance, 0 and 1 at first.
func ExampleBatchNorm() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	l := nn.NewBatchNorm(2)
	ctx := bg.Background()
	if err := nn.Init(ctx, d, l, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	d.Infer(ctx, func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Upload(s, []float32{1, 2, 3, 4}, 2, 2)))
		return nil
	})
	// Output:
	// float32[2 2] on cpu mean 2.5 std 1.291 [0.99999 2 3 4]

}

// Each row has mean 0 and variance 1 thereafter.
func ExampleLayerNorm() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	l := nn.NewLayerNorm(4)
	ctx := bg.Background()
	if err := nn.Init(ctx, d, l, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	d.Infer(ctx, func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Upload(s, []float32{1, 2, 3, 4}, 1, 4)))
		return nil
	})
	// Output:
	// float32[1 4] on cpu mean 0 std 1.155 [-1.3416 -0.44721 0.44721 1.3416]

}

// A table of 100 rows, and a row for each index.
func ExampleEmbedding() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	l := nn.NewEmbedding(100, 16)
	ctx := bg.Background()
	if err := nn.Init(ctx, d, l, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	d.Infer(ctx, func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Upload(s, []int{7, 42, 7}, 3)).Shape())
		return nil
	})
	// Output:
	// [3 16]

}

// Two samples of 5 places, 8 numbers each, seen by 2 heads.
func ExampleCausalSelfAttention() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	l := nn.NewCausalSelfAttention(8, 2)
	ctx := bg.Background()
	if err := nn.Init(ctx, d, l, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	d.Infer(ctx, func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Zeros(s, snug.Float32, 2, 5, 8)).Shape())
		return nil
	})
	// Output:
	// [2 5 8]

}

// Windows of 3 by 3 at every second pixel.
func ExampleMaxPool2D() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	l := nn.NewMaxPool2D(3, 2, 1)
	d.Infer(bg.Background(), func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Zeros(s, snug.Float32, 2, 64, 112, 112)).Shape())
		return nil
	})
	// Output:
	// [2 64 56 56]

}

// Outside of training nothing is dropped.
func ExampleDropout() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	l := nn.NewDropout(0.5)
	d.Infer(bg.Background(), func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Full(s, 1, snug.Float32, 4)))
		return nil
	})
	// Output:
	// float32[4] on cpu mean 1 std 0 [1 1 1 1]

}

// Any function of a tensor is a layer.
func ExampleFunc() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	l := nn.Sequential{nn.ReLU6, nn.Func(func(x *snug.Tensor) *snug.Tensor { return x.MulScalar(2) })}
	d.Infer(bg.Background(), func(s *snug.Scope) error {
		fmt.Println(l.Forward(snug.Upload(s, []float32{-1, 3, 9}, 3)))
		return nil
	})
	// Output:
	// float32[3] on cpu mean 6 std 6 [0 6 12]

}
