package checkpoint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/nn"
)

// The report says what recomputing saves, and where it saves nothing.
func TestReport(t *testing.T) {
	const unit = 512 * 512 * 4
	for _, device := range []string{testdevice.Name, testdevice.Dry} {
		d, err := snug.Open(device, snug.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		l := nn.NewLinear(512, 512, true)
		m := &struct{ Deep []*nn.Linear }{[]*nn.Linear{nn.NewLinear(512, 512, true), l}}
		if err := nn.Init(bg, d, m, snug.NewRand(1)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name        string
			fn          func(x *snug.Tensor) *snug.Tensor
			plain, held int64
			path, says  string
			opts        []snug.Option
		}{
			{"four operations", func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Tanh().Tanh().Tanh() }, 4, 1, "", ": recomputing saves 3.0 MiB of 4.0 MiB", nil},
			{"one operation", (*snug.Tensor).Tanh, 1, 1, "", ": recomputing saves nothing: it holds 1.0 MiB instead of 1.0 MiB", nil},
			{"a sum", func(x *snug.Tensor) *snug.Tensor { return x.Add(x) }, 0, 1, "", ": recomputing saves nothing: backward reads nothing of it", nil},
			{"one layer", func(x *snug.Tensor) *snug.Tensor { return l.Forward(x.Tanh()).Tanh() }, 2, 1, "deep.1", "deep.1 at report_test.go:", nil},
			{"two layers", func(x *snug.Tensor) *snug.Tensor { return l.Forward(m.Deep[0].Forward(x.Tanh())) }, 2, 1, "deep", "deep at report_test.go:", nil},
			{"kept", func(x *snug.Tensor) *snug.Tensor { return l.Forward(x.Tanh()).Tanh() }, 2, 2, "deep.1", "saves nothing", []snug.Option{checkpoint.Products()}},
			{"no gradient", func(x *snug.Tensor) *snug.Tensor { return x.Detach().Tanh() }, 0, 0, "", "saves nothing", []snug.Option{snug.NoGrad()}},
		} {
			var got []snug.Recomputed
			x := func(s *snug.Scope) *snug.Tensor {
				return snug.Zeros(s, snug.Float32, 512, 512).Track()
			}
			if c.name == "no gradient" {
				c.opts, x = nil, func(s *snug.Scope) *snug.Tensor { return snug.Zeros(s, snug.Float32, 512, 512) }
			}
			if err := d.Train(bg, func(s *snug.Scope) error {
				x := x(s)
				y := snug.Block(c.fn, x, append(c.opts, checkpoint.Here())...)
				return y.Add(snug.Zeros(s, snug.Float32, 1).Track()).Sum().Backward()
			}, checkpoint.Report(func(r snug.Recomputed) { got = append(got, r) })); err != nil {
				t.Fatal(c.name, err)
			}
			if len(got) != 1 {
				t.Fatalf("%s: %d reports", c.name, len(got))
			}
			r := got[0]
			if r.Plain != c.plain*unit || r.Held != c.held*unit || r.Path != c.path || !strings.Contains(r.String(), c.says) || !strings.Contains(r.String(), "report_test.go:") {
				t.Errorf("%s: %+v, want %d and %d units: %s", c.name, r, c.plain, c.held, r)
			}
			for _, p := range nn.Params(m) {
				p.Zero()
			}
		}
	}
}

// Segments report from the last to the first, and a policy's share is seen.
func TestReportOfAModel(t *testing.T) {
	var paths []string
	var held [2]int64
	for i, policy := range []snug.Option{checkpoint.Keep(), checkpoint.Products()} {
		paths = nil
		r := newTrained(t, testdevice.Dry, newGPT(0.2), tokens(4), checkpoint.Every(1), policy, checkpoint.Report(func(r snug.Recomputed) {
			paths = append(paths, r.Path)
			held[i] += r.Held
			if r.Saved() <= 0 {
				t.Error(r)
			}
		}))
		if err := r.train(0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(paths, []string{"blocks.1", "blocks.0"}) || held[0] >= held[1] {
		t.Error(paths, held)
	}
}
