package optest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
)

// weights are what the results' elements are multiplied by: their sum is the loss. They
// are exact in every type.
var weights = []float64{0.4375, -0.8125, 0.6875, 0.1875, -0.5625, 0.9375, -0.3125}

type checks struct {
	t  *testing.T
	op *Op
}

func (c *checks) open(name string, threads int) *snug.Device {
	d, err := snug.Open(name, snug.Config{LimitBytes: 1 << 30, Threads: threads})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { d.Close() })
	return d
}

// run is op.run with an error that ends the test.
func (c *checks) run(d *snug.Device, in []Array, w way) outcome {
	c.t.Helper()
	out, err := c.op.run(d, in, weights, w)
	if err != nil {
		c.t.Fatalf("%+v: %v", w, err)
	}
	return out
}

func (c *checks) reference() {
	r := c.op.Reference
	tol := r.Tolerance
	if tol == 0 {
		tol = 1e-5
	}
	fed := r.Fed.Values
	if len(fed) == 0 {
		fed = weights
	}
	out, err := c.op.run(c.open(testdevice.Name, 0), r.Inputs, fed, way{})
	if err != nil {
		c.t.Fatal(err)
	}
	want := outcome{y: r.Output}
	for _, g := range r.Gradients {
		want.grads = append(want.grads, g.Values)
	}
	c.near("reference", out, want, tol)
}

// all is every check that small inputs are enough for.
func (c *checks) all(shapes [][]int) {
	in := c.op.draw(shapes)
	d := c.open(testdevice.Name, 0)
	exact := c.run(d, in, way{dtype: snug.Float64})
	plain := c.run(d, in, way{})
	c.near("float32 against float64", plain, exact, 1e-5)
	c.differences(d, in, exact)

	for _, l := range []layout{asIs, copied} { // copied inside: what the block made, too
		c.same("recomputed, "+l.String(), c.run(d, in, way{recompute: true, layout: l}), plain)
		c.same("kept, "+l.String(), c.run(d, in, way{keep: true, layout: l}), plain)
	}
	for _, l := range []layout{transposed, strided} {
		c.same(l.String(), c.run(d, in, way{layout: l}), plain)
	}
	for i := range in {
		if plain.grads != nil && c.op.wants(i, way{}) {
			alone := c.run(d, in, way{only: i + 1})
			c.same(fmt.Sprintf("gradient of input %d alone", i), outcome{alone.y, [][]float64{alone.grads[i]}}, outcome{plain.y, plain.grads[i : i+1]})
		}
	}
	if !c.op.Wide {
		for dtype, tol := range map[snug.DType]float64{snug.BFloat16: 1.0 / 64, snug.Float16: 1.0 / 512} {
			rounded := c.round(d, in, dtype)
			for l := asIs; l <= strided; l++ {
				c.near(fmt.Sprintf("%s, %s", dtype, l), c.run(d, rounded, way{dtype: dtype, layout: l}), c.run(d, rounded, way{}), tol)
			}
		}
	}
	c.dryRun(in)
	c.sweep(d, in)
}

// differences compares the gradient with central ones, at some elements of each input.
func (c *checks) differences(d *snug.Device, in []Array, exact outcome) {
	const most = 40
	for i, want := range exact.grads {
		step := max(1, len(want)/most)
		for k := 0; want != nil && k < len(want); k += step {
			v := &in[i].Values[k]
			x := *v
			h := 1e-5 * max(1, math.Abs(x))
			var loss [2]float64
			for side := range loss {
				*v = x + h*float64(1-2*side)
				out := c.run(d, in, way{dtype: snug.Float64, only: -1})
				for j, y := range out.y.Values {
					loss[side] += y * weights[j%len(weights)]
				}
			}
			*v = x
			if got := (loss[0] - loss[1]) / (2 * h); !(math.Abs(got-want[k]) <= 1e-6*(1+math.Abs(got))) {
				c.t.Errorf("gradient of input %d at element %d (%.6g) is %.9g, by differences %.9g", i, k, x, want[k], got)
				return
			}
		}
	}
}

// round gives float inputs values that dtype can hold.
func (c *checks) round(d *snug.Device, in []Array, dtype snug.DType) []Array {
	out := make([]Array, len(in))
	err := d.Infer(c.t.Context(), func(s *snug.Scope) (err error) {
		for i, a := range in {
			if out[i] = a; err == nil && c.op.input(i).DType.Float() {
				out[i].Values, err = snug.Download[float64](floats(s, a.Values, a.Shape, dtype))
			}
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// threads checks that their number does not change a bit.
func (c *checks) threads(shapes [][]int) {
	in := c.op.draw(shapes)
	for _, l := range []layout{asIs, transposed} {
		one := c.run(c.open(testdevice.Name, 1), in, way{layout: l})
		c.same(fmt.Sprintf("three threads, %s", l), c.run(c.open(testdevice.Name, 3), in, way{layout: l}), one)
	}
}

// dryRun checks that a device without values allocates the same.
func (c *checks) dryRun(in []Array) {
	wet, dry := c.open(testdevice.Name, 2), c.open(testdevice.Dry, 2)
	for _, w := range []way{{}, {recompute: true}, {layout: strided}, {dtype: snug.BFloat16}} {
		if w.dtype.Half() && c.op.Wide {
			continue
		}
		for _, d := range []*snug.Device{wet, dry} {
			d.Memory().ResetPeak()
			c.run(d, in, w)
		}
		if a, b := wet.Memory().Stats(), dry.Memory().Stats(); a != b {
			c.t.Errorf("%+v: a dry run's memory differs:\n%+v, the real one's:\n%+v", w, b, a)
		}
	}
}

// sweep has each allocation fail in turn.
func (c *checks) sweep(d *snug.Device, in []Array) {
	for _, w := range []way{{}, {recompute: true}, {layout: strided}} {
		for n := 0; ; n++ {
			d.Memory().FailAt(n)
			_, err := c.op.run(d, in, weights, w)
			if err == nil {
				d.Memory().FailAt(-1)
				break
			}
			if !errors.Is(err, memory.ErrOutOfMemory) || n > 10000 {
				c.t.Fatalf("%+v, allocation %d fails: %v", w, n, err)
			}
			if live := d.Memory().Stats().Allocated; live != 0 {
				c.t.Fatalf("%+v, allocation %d fails: %d bytes are left", w, n, live)
			}
		}
	}
}

func (c *checks) near(what string, got, want outcome, tol float64) {
	c.t.Helper()
	c.compare(what, got, want, func(got, want []float64) error {
		var diff, norm float64
		for i, w := range want {
			diff += (got[i] - w) * (got[i] - w)
			norm += w * w
		}
		if d, n := math.Sqrt(diff), math.Sqrt(norm); !(d <= tol*(1+n)) {
			return fmt.Errorf("‖got−want‖ is %.3g for ‖want‖ = %.3g, beyond %.1g:\ngot  %.6g\nwant %.6g", d, n, tol, head(got), head(want))
		}
		return nil
	})
}

func (c *checks) same(what string, got, want outcome) {
	c.t.Helper()
	c.compare(what, got, want, func(got, want []float64) error {
		if !same(got, want) {
			return fmt.Errorf("other bits:\ngot  %.9g\nwant %.9g", head(got), head(want))
		}
		return nil
	})
}

func (c *checks) compare(what string, got, want outcome, differ func(got, want []float64) error) {
	c.t.Helper()
	if fmt.Sprint(got.y.Shape) != fmt.Sprint(want.y.Shape) {
		c.t.Errorf("%s: shape %v, want %v", what, got.y.Shape, want.y.Shape)
		return
	}
	part := func(name string, g, w []float64) {
		if len(g) != len(w) {
			c.t.Errorf("%s: %s: %d values, want %d", what, name, len(g), len(w))
		} else if err := differ(g, w); err != nil {
			c.t.Errorf("%s: %s: %v", what, name, err)
		}
	}
	part("result", got.y.Values, want.y.Values)
	for i, w := range want.grads {
		if w != nil && i < len(got.grads) {
			part(fmt.Sprintf("gradient of input %d", i), got.grads[i], w)
		} else if w != nil {
			c.t.Errorf("%s: no gradient of input %d", what, i)
		}
	}
}

func same(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func head(v []float64) []float64 { return v[:min(8, len(v))] }
