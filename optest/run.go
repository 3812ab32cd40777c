package optest

import (
	"context"
	"fmt"
	"slices"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
)

// way is one of those in which an operation runs. But for rounding, the result is always
// the same.
type way struct {
	dtype     snug.DType
	layout    layout
	recompute bool
	keep      bool // recomputed, with all results kept
	only      int  // the number, from 1, of the one input whose gradient is wanted; 0: all
}

// outcome has the result and the inputs' gradients, nil where none is wanted.
type outcome struct {
	y     Array
	grads [][]float64
}

// run feeds weights, repeated, as the result's gradient. There are no values in a dry run.
func (op *Op) run(d *snug.Device, in []Array, fed []float64, w way) (out outcome, err error) {
	dry := d.Name() == testdevice.Dry
	before := d.Memory().Stats().Allocated
	read := func(t *snug.Tensor) (v []float64, err error) {
		if !dry {
			v, err = snug.Download[float64](t)
		}
		return v, err
	}
	err = d.Train(context.Background(), func(s *snug.Scope) error {
		x := make([]*snug.Tensor, len(in))
		tracked := false
		for i, a := range in {
			x[i] = op.upload(s, i, a, w.dtype)
			if op.wants(i, w) {
				x[i].Track()
				tracked = true
			}
		}
		f := func(x ...*snug.Tensor) []*snug.Tensor {
			x = slices.Clone(x)
			for i := range x {
				switch {
				case w.layout != asIs:
					x[i] = snug.Apply(lay(w.layout), x[i])
				case op.InPlace && i == 0:
					x[i] = snug.Apply(lay(copied), x[i])
				}
			}
			y := op.F(x...)
			if w.layout != asIs {
				y = snug.Apply(lay(w.layout), y)
			}
			if w.keep && y.DType().Float() { // a reader, for which y is kept
				return []*snug.Tensor{y, y.Tanh()}
			}
			return []*snug.Tensor{y}
		}
		var y *snug.Tensor
		switch {
		case w.keep:
			all := func(string, []int, snug.DType, int64) bool { return true }
			y = snug.BlockN(f, x, checkpoint.Here(), checkpoint.Policy(all))[0]
		case w.recompute:
			y = snug.BlockN(f, x, checkpoint.Here())[0]
		default:
			y = f(x...)[0]
		}
		values, err := read(y)
		if err != nil {
			return err
		}
		out.y = Array{y.Shape(), values}
		for i, a := range in {
			if v, err := read(x[i]); err != nil {
				return err
			} else if w.dtype == snug.Float64 && !dry && !same(v, a.Values) {
				return fmt.Errorf("it has changed its input %d", i)
			}
		}
		if !tracked || !y.DType().Float() {
			return s.Err()
		}
		g := make([]float64, y.Len())
		for i := range g {
			g[i] = fed[i%len(fed)]
		}
		if err := y.Mul(floats(s, g, y.Shape(), y.DType())).Sum().Backward(); err != nil {
			return err
		}
		out.grads = make([][]float64, len(in))
		for i := range in {
			if op.wants(i, w) {
				g := x[i].Grad()
				if g == nil {
					return fmt.Errorf("no gradient of input %d", i)
				}
				if out.grads[i], err = read(g); err != nil {
					return err
				}
				if !slices.Equal(g.Shape(), in[i].Shape) {
					return fmt.Errorf("gradient of input %d has shape %v, input %v", i, g.Shape(), in[i].Shape)
				}
			}
		}
		return nil
	}, snug.Random(snug.NewRand(3)))
	if now := d.Memory().Stats().Allocated; now != before {
		return out, fmt.Errorf("leak of %d bytes; %w", now-before, err)
	}
	return out, err
}

func (op *Op) wants(i int, w way) bool {
	in := op.input(i)
	return in.DType.Float() && !in.Constant && !op.Constant && (w.only == 0 || w.only == i+1)
}

func (op *Op) upload(s *snug.Scope, i int, a Array, dtype snug.DType) *snug.Tensor {
	if t := op.input(i).DType; !t.Float() {
		n := make([]int64, len(a.Values))
		for i, v := range a.Values {
			n[i] = int64(v)
		}
		return snug.Upload(s, n, a.Shape...).Cast(t)
	}
	return floats(s, a.Values, a.Shape, dtype)
}

func floats(s *snug.Scope, v []float64, shape []int, dtype snug.DType) *snug.Tensor {
	if dtype == snug.Float64 {
		return snug.Upload(s, v, shape...)
	}
	f := make([]float32, len(v))
	for i, v := range v {
		f[i] = float32(v)
	}
	return snug.Upload(s, f, shape...).Cast(dtype)
}

// layout is how the elements of an operation's inputs, result and gradient lie.
type layout int

const (
	asIs layout = iota
	copied
	transposed
	strided // every third element, from the second on
)

func (l layout) String() string {
	return [...]string{"as they are", "copied", "transposed", "strided"}[l]
}

// lay is the identity, with its result and its gradient laid out anew.
func lay(l layout) *snug.Op {
	dense := func(c *snug.Call, t *snug.Tensor) *snug.Tensor { return c.Run("copy", t.Shape(), nil, t) }
	to := func(c *snug.Call, t *snug.Tensor) *snug.Tensor {
		switch l {
		case transposed:
			back := make([]int, t.Dims())
			for i := range back {
				back[i] = len(back) - 1 - i
			}
			return dense(c, t.Permute(back...)).Permute(back...)
		case strided:
			wide := append(t.Shape(), 3)
			return dense(c, t.Reshape(append(t.Shape(), 1)...).Expand(wide...)).Narrow(-1, 1, 1).Reshape(t.Shape()...)
		}
		return dense(c, t)
	}
	return &snug.Op{
		Name:     "lay out " + l.String(),
		Forward:  func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor { return to(c, in[0]) },
		Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor { return []*snug.Tensor{to(c, dy)} },
	}
}
