package checkpoint_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
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
	d, err := snug.Open("cpu", snug.Config{LimitBytes: 1 << 30})
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
