package checkpoint_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/nn"
)

// chain is blocks of a linear layer, dropout and activations.
type chain struct{ Blocks []*nn.Linear }

func newChain(ctx context.Context, d *snug.Device, n int) *chain {
	m := &chain{}
	for range n {
		m.Blocks = append(m.Blocks, nn.NewLinear(64, 64, true))
	}
	if err := nn.Init(ctx, d, m, snug.NewRand(1)); err != nil {
		panic(err)
	}
	return m
}

func (m *chain) Forward(x *snug.Tensor, calls *int) *snug.Tensor {
	for _, l := range m.Blocks {
		x = snug.Block(func(x *snug.Tensor) *snug.Tensor {
			*calls++
			return l.Forward(x.Sigmoid()).Dropout(0.5).Sigmoid().Tanh()
		}, x)
	}
	return x
}

// step gives the loss, all gradients, the peak in bytes, and how often blocks ran.
func step(ctx context.Context, d *snug.Device, m *chain, o ...snug.Option) (values []float64, peak int64, calls int, err error) {
	d.Memory().ResetPeak()
	err = d.Train(ctx, func(s *snug.Scope) error {
		x := snug.Full(s, 0.5, snug.Float32, 128, 64)
		loss := nn.MSE(m.Forward(x, &calls), snug.Zeros(s, snug.Float32, 128, 64))
		if err := loss.Backward(); err != nil {
			return err
		}
		v, err := loss.Item()
		values = append(values, v)
		return err
	}, append(o, snug.Random(snug.NewRand(2)))...)
	peak = d.Memory().Stats().Peak.Allocated
	if err == nil {
		err = d.Infer(ctx, func(s *snug.Scope) error {
			for _, p := range nn.Params(m) {
				g, err := snug.Download[float64](p.Grad(s))
				if err != nil {
					return err
				}
				values = append(values, g...)
			}
			return nil
		})
	}
	for _, p := range nn.Params(m) {
		p.Zero()
	}
	return values, peak, calls, err
}

func TestEveryAndHere(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m := newChain(t.Context(), d, 8)
	plain, most, calls, err := step(t.Context(), d, m)
	if err != nil || calls != 8 {
		t.Fatal(err, calls)
	}
	peak := map[int]int64{}
	for k, again := range map[int]int{1: 8, 2: 4, 3: 2, 8: 1, 9: 0} {
		values, p, calls, err := step(t.Context(), d, m, checkpoint.Every(k))
		if err != nil || calls != 8+again || !slices.Equal(values, plain) {
			t.Error(k, err, calls, "or other bits")
		}
		peak[k] = p
	}
	if !(peak[1] < peak[2] && peak[2] < most && peak[9] == most) {
		t.Error(peak, most)
	}
	defer func() {
		if recover() == nil {
			t.Error("every 0-th block")
		}
	}()
	checkpoint.Every(0)
}

func ExampleEvery() {
	ctx := context.Background()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	m := newChain(ctx, d, 8)

	plain, most, _, _ := step(ctx, d, m)
	same, less, _, _ := step(ctx, d, m, checkpoint.Every(1))
	fmt.Println("same bits:", slices.Equal(plain, same))
	fmt.Println("less memory:", less < most)
	// Output:
	// same bits: true
	// less memory: true
}

func ExampleHere() {
	ctx := context.Background()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	runs := 0
	err = d.Train(ctx, func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 2, 3}, 3).Track()
		y := snug.Block(func(x *snug.Tensor) *snug.Tensor {
			runs++
			return x.Mul(x).Tanh()
		}, x, checkpoint.Here())
		return y.Sum().Backward()
	})
	fmt.Println(runs, err)
	// Output: 2 <nil>
}

// Sequential is a layer of a model; its segments are recomputed without options.
func ExampleSequential() {
	ctx := context.Background()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	m := nn.Sequential{
		checkpoint.NewSequential(nn.Sequential{
			nn.NewLinear(4, 8, true), nn.GELU,
			nn.NewLinear(8, 8, true), nn.GELU,
		}, 2),
		nn.NewLinear(8, 1, true),
	}
	if err := nn.Init(ctx, d, m, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	err = d.Train(ctx, func(s *snug.Scope) error {
		x := snug.Full(s, 0.5, snug.Float32, 16, 4)
		return nn.MSE(m.Forward(x), snug.Zeros(s, snug.Float32, 16, 1)).Backward()
	})
	for name, p := range nn.Params(m) {
		fmt.Println(name, p.HasGrad())
	}
	fmt.Println(err)
	// Output:
	// 0.0.weight true
	// 0.0.bias true
	// 0.2.weight true
	// 0.2.bias true
	// 1.weight true
	// 1.bias true
	// <nil>
}

// A policy may go by an operation's name and by its result.
func ExamplePolicy() {
	ctx := context.Background()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	smallProducts := checkpoint.Policy(func(op string, shape []int, dtype snug.DType, bytes int64) bool {
		keep := op == "matmul" && bytes <= 1<<10
		fmt.Println(op, shape, dtype, keep)
		return keep
	})
	err = d.Train(ctx, func(s *snug.Scope) error {
		x := snug.Full(s, 0.1, snug.Float32, 4, 64).Track()
		y := snug.Block(func(x *snug.Tensor) *snug.Tensor {
			return x.T().MatMul(x).Tanh().MatMul(x.T()).Tanh()
		}, x, checkpoint.Here(), smallProducts)
		return y.Sum().Backward()
	})
	fmt.Println(err)
	// Output:
	// matmul [64 64] float32 false
	// tanh [64 64] float32 false
	// matmul [64 4] float32 true
	// tanh [64 4] float32 false
	// <nil>
}

// Products are kept, so that little of a forward pass is computed twice.
func ExampleProducts() {
	ctx := context.Background()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	m := newChain(ctx, d, 8)

	plain, most, _, _ := step(ctx, d, m)
	same, some, _, _ := step(ctx, d, m, checkpoint.Every(1), checkpoint.Products())
	_, least, _, _ := step(ctx, d, m, checkpoint.Every(1))
	fmt.Println("same bits:", slices.Equal(plain, same))
	fmt.Println("between the two:", least < some && some < most)
	// Output:
	// same bits: true
	// between the two: true
}

func ExampleReport() {
	ctx := context.Background()
	d, err := snug.Open("dry:cpu", snug.Config{}) // says the same as a device with values
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	report := checkpoint.Report(func(r snug.Recomputed) {
		if r.Saved() <= 0 {
			fmt.Println("nothing saved:", r.Held>>20, "MiB held instead of", r.Plain>>20)
			return
		}
		fmt.Println(r.Saved()>>20, "MiB saved of", r.Plain>>20)
	})
	err = d.Train(ctx, func(s *snug.Scope) error {
		x := snug.Zeros(s, snug.Float32, 1<<18).Track()
		x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Tanh().Tanh() }, x, checkpoint.Here())
		x = snug.Block((*snug.Tensor).Tanh, x, checkpoint.Here())
		return x.Sum().Backward()
	}, report)
	fmt.Println(err)
	// Output:
	// nothing saved: 1 MiB held instead of 1
	// 2 MiB saved of 3
	// <nil>
}
