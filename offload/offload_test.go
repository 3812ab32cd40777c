package offload_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// run gives the gradient of blocks of tanh, and the peaks of the device and the host.
func run(ctx context.Context, o ...snug.Option) (grad []float32, device, host int64, err error) {
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 30})
	if err != nil {
		return nil, 0, 0, err
	}
	defer d.Close()
	err = d.Train(ctx, func(s *snug.Scope) (err error) {
		x := snug.Full(s, 0.5, snug.Float32, 1<<16).Track()
		y := x
		for range 8 {
			y = snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Sigmoid().Tanh() }, y)
		}
		if err := y.Sum().Backward(); err != nil {
			return err
		}
		grad, err = snug.Download[float32](x.Grad())
		return err
	}, o...)
	if live := d.Memory().Stats().Allocated + d.Host().Stats().Allocated; live != 0 && err == nil {
		err = fmt.Errorf("%d bytes are left", live)
	}
	return grad, d.Memory().Stats().Peak.Allocated, d.Host().Stats().Peak.Allocated, err
}

func TestActivations(t *testing.T) {
	plain, most, none, err := run(t.Context())
	if err != nil || none != 0 {
		t.Fatal(err, none)
	}
	all := offload.Activations(offload.Config{MinBytes: 1})
	for name, o := range map[string][]snug.Option{"alone": {all}, "with checkpoint": {all, checkpoint.Every(2)}} {
		grad, device, host, err := run(t.Context(), o...)
		if err != nil || !slices.Equal(grad, plain) || device >= most || host == 0 {
			t.Error(name, err, device, most, host)
		}
	}
	for _, c := range []offload.Config{{MinBytes: -1}, {AheadBytes: -1}} {
		if _, _, _, err := run(t.Context(), offload.Activations(c)); err == nil || !strings.Contains(err.Error(), "-1 bytes") {
			t.Error(c, err)
		}
	}
	if grad, device, host, err := run(t.Context(), offload.Activations(offload.Default())); err != nil || !slices.Equal(grad, plain) || device != most || host != 0 {
		t.Error("small ones stay:", err, device, most, host)
	}
}

func ExampleActivations() {
	_, most, _, _ := run(context.Background())
	_, less, _, err := run(context.Background(), offload.Activations(offload.Config{MinBytes: 4096}))
	fmt.Println("less on the device:", less < most, err)
	// Output: less on the device: true <nil>
}

// A file in place of the host's memory.
func ExampleConfig() {
	ctx, dir := context.Background(), os.TempDir()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	err = d.Train(ctx, func(s *snug.Scope) error {
		y := snug.Full(s, 0.5, snug.Float32, 1<<16).Track()
		for range 3 {
			y = snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Sigmoid() }, y)
		}
		return y.Sum().Backward()
	}, offload.Activations(offload.Config{MinBytes: 1 << 10, AheadBytes: 1 << 20, Dir: dir}))
	pool, _ := d.Disk(dir)
	fmt.Println(pool.Stats().Peak.Allocated, "bytes on disk,", d.Host().Stats().Peak.Allocated, "on the host:", err)
	// Output: 786432 bytes on disk, 0 on the host: <nil>
}

// AdamW's two moments are as long as the parameters.
func ExampleState() {
	ctx := context.Background()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	model := nn.NewLinear(1024, 1024, false)
	if err := nn.Init(ctx, d, model, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	offload.State(d, offload.OnHost)
	if _, err := optim.NewAdamW(nn.Params(model), optim.DefaultAdamW()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Memory().Stats().Allocated>>20, "MiB on the device,", d.Host().Stats().Allocated>>20, "on the host")
	// Output: 4 MiB on the device, 8 on the host
}

// Of three layers in Blocks, one is on the device at a time.
func ExampleParams() {
	ctx := context.Background()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	var model struct{ Layers [3]*nn.Linear }
	for i := range model.Layers {
		model.Layers[i] = nn.NewLinear(512, 512, false)
	}
	if err := offload.Params(nn.Params(&model)); err != nil {
		fmt.Println(err)
		return
	}
	if err := nn.Init(ctx, d, &model, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	err = d.Infer(ctx, func(s *snug.Scope) error {
		x := snug.Zeros(s, snug.Float32, 1, 512)
		for _, l := range model.Layers {
			x = snug.Block(l.Forward, x)
		}
		return s.Err()
	})
	fmt.Println(d.Memory().Stats().AtPeak[memory.Parameters]>>20, "MiB of", d.Host().Stats().Allocated>>20, err)
	// Output: 1 MiB of 3 <nil>
}

// A gradient is as long as its parameter.
func ExampleGrads() {
	ctx := context.Background()
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	model := nn.NewLinear(512, 512, false)
	if err := nn.Init(ctx, d, model, snug.NewRand(1)); err != nil {
		fmt.Println(err)
		return
	}
	offload.Grads(nn.Params(model))
	err = d.Train(ctx, func(s *snug.Scope) error {
		return model.Forward(snug.Zeros(s, snug.Float32, 1, 512)).Sum().Backward()
	})
	fmt.Println(d.Memory().Stats().Categories[memory.Gradients], "bytes on the device,", d.Host().Stats().Allocated>>20, "MiB on the host", err)
	// Output: 0 bytes on the device, 1 MiB on the host <nil>
}
