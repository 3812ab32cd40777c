package checkpoint_test

import (
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/nn"
)

// Names and paths are those of an nn.Sequential, in a model too.
func TestSequentialIsALayer(t *testing.T) {
	m := &struct {
		Trunk *checkpoint.Sequential
		Head  *nn.Linear
	}{checkpoint.NewSequential(nn.Sequential{nn.NewLinear(3, 3, false), nn.Tanh, nn.NewLinear(3, 3, false)}, 2), nn.NewLinear(3, 1, false)}
	var names []string
	for name := range nn.Params(m) {
		names = append(names, name)
	}
	if !slices.Equal(names, []string{"trunk.0.weight", "trunk.2.weight", "head.weight"}) {
		t.Error(names)
	}
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := nn.Init(bg, d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	if got := m.Trunk.Layers[2].(*nn.Linear).Weight.Name(); got != "trunk.2.weight" {
		t.Error(got)
	}
	if err := d.Infer(bg, func(s *snug.Scope) error {
		y, err := snug.Download[float32](m.Head.Forward(m.Trunk.Forward(snug.Upload(s, waves(6, 1), 2, 3))))
		if len(y) != 2 {
			t.Error(y)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// Segments differ by one layer at most, and each runs twice; more than there are layers
// are one a layer.
func TestSegments(t *testing.T) {
	for segments, want := range map[int][]int{1: {5}, 2: {2, 3}, 3: {1, 2, 2}, 5: {1, 1, 1, 1, 1}, 9: {1, 1, 1, 1, 1}} {
		var runs []int // of layers, in order
		var layers []nn.Layer
		for i := range 5 {
			layers = append(layers, nn.Func(func(x *snug.Tensor) *snug.Tensor {
				runs = append(runs, i)
				return x.Tanh()
			}))
		}
		m := checkpoint.NewSequential(layers, segments)
		plain := gradient(t, func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Tanh().Tanh().Tanh().Tanh() })
		if got := gradient(t, m.Forward); !slices.Equal(got, plain) {
			t.Errorf("%d segments: gradient %v, want %v", segments, got, plain)
		}
		again := runs[5:] // the last segment first
		var sizes []int
		for len(again) > 0 {
			n := 1
			for n < len(again) && again[n] == again[n-1]+1 {
				n++
			}
			sizes, again = append([]int{n}, sizes...), again[n:]
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("%d segments: of %v layers, want %v", segments, sizes, want)
		}
	}
	if m := checkpoint.NewSequential[nn.Layer](nil, 3); len(gradient(t, func(x *snug.Tensor) *snug.Tensor { return m.Forward(x).Tanh() })) != 40 {
		t.Error("no layers")
	}
	defer func() {
		if recover() == nil {
			t.Error("0 segments")
		}
	}()
	checkpoint.NewSequential([]nn.Layer{nn.Tanh}, 0)
}

// 16 layers that save a unit each: in 4 segments the peak of backward is about half. Where
// nothing large follows, the last segment may as well be left plain.
func TestPeakOfSegments(t *testing.T) {
	peak := func(m nn.Layer) int64 {
		d, err := snug.Open(testdevice.Dry, snug.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := snug.Zeros(s, snug.Float32, 512, 512).Track()
			return m.Forward(x).Sum().Backward()
		}); err != nil {
			t.Fatal(err)
		}
		return d.Memory().Stats().Peak.Allocated >> 20
	}
	var l nn.Sequential
	for range 16 {
		l = append(l, nn.Tanh)
	}
	plain, four := peak(l), peak(checkpoint.NewSequential(l, 4))
	last := peak(nn.Sequential{checkpoint.NewSequential(l[:12], 3), l[12:]})
	t.Logf("plain %d, 4 segments %d, the last one plain %d", plain, four, last)
	if !(four <= 11 && plain >= 17 && last <= four) {
		t.Errorf("plain %d, 4 segments %d, the last one plain %d", plain, four, last)
	}
}
