package offload_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/offload"
)

// run gives the gradient of blocks of tanh, and the peaks of the device and the host.
func run(ctx context.Context, o ...snug.Option) (grad []float32, device, host int64, err error) {
	d, err := snug.Open("cpu", snug.Config{LimitBytes: 1 << 30})
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
