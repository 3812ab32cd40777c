package snug_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/snug-ml/snug"
	values "github.com/snug-ml/snug/internal/golden"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

// batchNorm is in training: with x's own statistics.
func batchNorm(x ...*snug.Tensor) *snug.Tensor {
	mean, variance := x[0].MeanVariance()
	return x[0].BatchNorm(mean, variance, x[1], x[2], 1e-5, true)
}

func batchNormReLU(x ...*snug.Tensor) *snug.Tensor {
	mean, variance := x[0].MeanVariance()
	return x[0].BatchNormReLU(mean, variance, x[1], x[2], 1e-5, true)
}

func batchNormReLU6(x ...*snug.Tensor) *snug.Tensor {
	mean, variance := x[0].MeanVariance()
	return x[0].BatchNormReLU6(mean, variance, x[1], x[2], 1e-5, true)
}

func batchNormAdd(x ...*snug.Tensor) *snug.Tensor {
	mean, variance := x[0].MeanVariance()
	return x[0].BatchNormAdd(x[3], mean, variance, x[1], x[2], 1e-5, true)
}

func batchNormAddReLU(x ...*snug.Tensor) *snug.Tensor {
	mean, variance := x[0].MeanVariance()
	return x[0].BatchNormAddReLU(x[3], mean, variance, x[1], x[2], 1e-5, true)
}

func TestBatchNorm(t *testing.T) {
	shapes := [][][]int{
		{{4, 3}, {3}, {3}}, {{2, 3, 5}, {3}, {3}}, {{2, 2, 3, 4}, {2}, {2}}, {{3, 1, 1, 1}, {1}, {1}},
		{{0, 2}, {2}, {2}}, {{2, 0, 3}, {0}, {0}}, {{2, 1, 30, 30}, {1}, {1}},
	}
	optest.Run(t, optest.Op{Name: "batch norm", F: batchNorm, Shapes: shapes, Large: [][]int{{8, 40, 17, 13}, {40}, {40}}})
	optest.Run(t, optest.Op{Name: "batch norm relu", F: batchNormReLU, Shapes: shapes, Large: [][]int{{8, 40, 17, 13}, {40}, {40}}})
	optest.Run(t, optest.Op{Name: "columns", F: batchNorm, Large: [][]int{{200, 300}, {300}, {300}}, Shapes: shapes[:1]})
	optest.Run(t, optest.Op{Name: "columns relu", F: batchNormReLU, Large: [][]int{{200, 300}, {300}, {300}}, Shapes: shapes[:1]})
	for _, name := range []string{"batchnorm4d_train", "batchnorm2d_train"} {
		optest.Run(t, optest.Op{Name: name, F: batchNorm, Reference: golden(t, "layers", name)})
	}
}

// One operation has the bits of the chain that it stands for.
func TestBatchNormBits(t *testing.T) {
	type tensor = *snug.Tensor
	for _, c := range []struct{ one, chain func(...tensor) tensor }{
		{batchNormReLU, func(x ...tensor) tensor { return batchNorm(x...).ReLU() }},
		{batchNormReLU6, func(x ...tensor) tensor { return batchNorm(x...).ReLU6() }},
		{batchNormAdd, func(x ...tensor) tensor { return batchNorm(x...).Add(x[3]) }},
		{batchNormAddReLU, func(x ...tensor) tensor { return batchNorm(x...).Add(x[3]).ReLU() }},
	} {
		for _, dtype := range []snug.DType{snug.Float32, snug.Float64} {
			for _, shape := range [][]int{{4, 3, 9, 7}, {30, 3}} {
				var got [2][]float64
				for i, f := range []func(...tensor) tensor{c.one, c.chain} {
					if err := open(t).Train(t.Context(), func(s *snug.Scope) error {
						var in []tensor
						for _, shape := range [][]int{shape, {3}, {3}, shape} {
							in = append(in, snug.RandNormal(s, dtype, shape...).MulScalar(3).Detach().Track())
						}
						y := f(in...).Keep()
						if err := y.Mul(in[0]).Sum().Backward(); err != nil {
							return err
						}
						for _, v := range append(in, y) {
							if v != y {
								v = v.Grad()
							}
							if v != nil { // y is not in all of them
								f, err := snug.Download[float64](v)
								if got[i] = append(got[i], f...); err != nil {
									return err
								}
							}
						}
						return nil
					}, snug.Random(snug.NewRand(7))); err != nil {
						t.Fatal(err)
					}
				}
				if len(got[0]) == 0 || !slices.Equal(got[0], got[1]) {
					t.Errorf("%s %v: %v, want %v", dtype, shape, got[0][:5], got[1][:5])
				}
			}
		}
	}
}

// A chain of recipes is made again from what saves anything; every ninth keeps its result.
func TestRecipesOfRecipes(t *testing.T) {
	const blocks, bytes = 20, 8 * 4 * 32 * 32 * 4
	run := func(norm func(...*snug.Tensor) *snug.Tensor) (held int64, grads []float32) {
		d := open(t)
		if err := d.Train(t.Context(), func(s *snug.Scope) (err error) {
			in, one := snug.RandNormal(s, snug.Float32, 8, 4, 32, 32).Track(), snug.Full(s, 1, snug.Float32, 4).Track()
			base := d.Memory().Stats().Allocated
			var fns []func(*snug.Tensor) *snug.Tensor
			for range blocks {
				fns = append(fns, func(x *snug.Tensor) *snug.Tensor {
					return snug.Block(func(x *snug.Tensor) *snug.Tensor {
						y := x.MulScalar(1.5)
						return norm(y, one, one, x)
					}, x)
				})
			}
			y := snug.Chain(in, fns...)
			held = d.Memory().Stats().Allocated - base
			if err := y.Square().Sum().Backward(); err != nil {
				return err
			}
			grads, err = snug.Download[float32](in.Grad())
			return err
		}, snug.Random(snug.NewRand(7))); err != nil {
			t.Fatal(err)
		}
		return held, grads
	}
	// Held are each block's y, the last result, and two results between.
	held, grads := run(batchNormAddReLU)
	if n := held / bytes; n != blocks+1+2 {
		t.Errorf("%d activations held", n)
	}
	all, want := run(func(x ...*snug.Tensor) *snug.Tensor { return batchNorm(x...).Add(x[3]).ReLU() })
	if n := all / bytes; n != 2*blocks || !slices.Equal(grads, want) {
		t.Errorf("%d activations held by the operations apart, or other bits", n)
	}
}

// Where more memory was in use before, backward runs each recipe of a chain once. Where
// there is no more than it needs, it runs some again, with the same bits and the same peak.
func TestRecipesAreRemembered(t *testing.T) {
	const blocks, elements = 8, 3 << 17
	run := func(room bool) (runs int, grads []float32) {
		op := snug.Op{
			Name: "times",
			Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
				c.Save("x", in[0])
				c.Save("y", in[1])
				return in[0].Mul(in[1])
			},
			Remake: func(c *snug.Call) *snug.Tensor {
				runs++
				return c.Saved("x").Mul(c.Saved("y"))
			},
			Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
				return []*snug.Tensor{dy.Mul(c.Saved("y")), dy.Mul(c.Saved("x"))}
			},
		}
		d := open(t)
		if err := d.Train(t.Context(), func(s *snug.Scope) (err error) {
			in := ramp(s, elements).Track()
			y := in
			for range blocks {
				y = snug.Block(func(y *snug.Tensor) *snug.Tensor { return snug.Apply(&op, in.MulScalar(1.5), y) }, y)
			}
			loss := y.Sum()
			if room {
				snug.Full(s, 0, snug.Float32, blocks+4, elements).Free()
			}
			peak := d.Memory().Stats().Peak.Allocated
			if err := loss.Backward(); err != nil {
				return err
			}
			if after := d.Memory().Stats().Peak.Allocated; room && after != peak {
				t.Errorf("the peak rose from %d to %d", peak, after)
			}
			grads, err = snug.Download[float32](in.Grad())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return runs, grads
	}
	once, want := run(true)
	if once != blocks-1 {
		t.Errorf("%d recipes run %d times", blocks-1, once)
	}
	if again, grads := run(false); again <= once || !slices.Equal(grads, want) {
		t.Errorf("run %d times without room, or other bits", again)
	}
}

// With given statistics no gradient passes through them.
func TestBatchNormEval(t *testing.T) {
	given := func(x ...*snug.Tensor) *snug.Tensor { return x[0].BatchNorm(x[3], x[4], x[1], x[2], 1e-5, false) }
	inputs := []optest.Input{{}, {}, {}, {Constant: true}, {Constant: true, Draw: optest.Uniform(0.5, 2).Draw}}
	optest.Run(t, optest.Op{
		Name: "given", F: given, Inputs: inputs,
		Shapes: [][][]int{{{2, 3, 4}, {3}, {3}, {3}, {3}}, {{2, 3}, {3}, {3}, {3}, {3}}},
	})
	optest.Run(t, optest.Op{
		Name: "given relu", Inputs: inputs,
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].BatchNormReLU(x[3], x[4], x[1], x[2], 1e-5, false) },
		Shapes: [][][]int{{{2, 3, 4}, {3}, {3}, {3}, {3}}, {{2, 3}, {3}, {3}, {3}, {3}}},
	})
	f := values.Load(t, "layers")
	for _, name := range []string{"batchnorm4d_eval", "batchnorm2d_eval"} {
		r := golden(t, "layers", name)
		for _, role := range []string{"running_mean", "running_var"} {
			a, ok := f.Tensor(name, role)
			if !ok {
				t.Fatal(name, role)
			}
			r.Inputs = append(r.Inputs, optest.Array{Shape: a.Shape, Values: a.F})
			r.Gradients = append(r.Gradients, optest.Array{})
		}
		optest.Run(t, optest.Op{Name: name, F: given, Inputs: inputs, Reference: r})
	}
}

// Statistics of values that lie far from 0 keep their digits.
func TestMeanVariance(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Infer(t.Context(), func(s *snug.Scope) error {
		x := make([]float32, 2*3*64)
		for i := range x {
			x[i] = 1e4 + float32(i%4)
		}
		mean, variance := snug.Upload(s, x, 2, 3, 64).MeanVariance()
		for _, c := range []struct {
			t    *snug.Tensor
			want float32
		}{{mean, 1e4 + 1.5}, {variance, 1.25}} {
			got, err := snug.Download[float32](c.t)
			if err != nil {
				return err
			}
			for _, v := range got {
				if !(v == c.want) {
					t.Errorf("%v, want %v", got, c.want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBatchNormRefuses(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, shapes := range [][2][]int{{{4}, {4}}, {{4, 3}, {4}}} {
		err := d.Infer(t.Context(), func(s *snug.Scope) error {
			v := snug.Zeros(s, snug.Float32, shapes[1]...)
			snug.Zeros(s, snug.Float32, shapes[0]...).BatchNorm(v, v, v, v, 1e-5, false)
			return nil
		})
		wantError(t, err, snug.ErrShape)
	}
}

// Each column is normalized by its own mean and variance.
func ExampleTensor_BatchNorm() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	d.Infer(context.Background(), func(s *snug.Scope) error {
		x := snug.Upload(s, []float32{1, 10, 3, 30}, 2, 2)
		one, zero := snug.Full(s, 1, snug.Float32, 2), snug.Zeros(s, snug.Float32, 2)
		mean, variance := x.MeanVariance()
		fmt.Println(mean)
		fmt.Println(variance)
		fmt.Println(x.BatchNorm(mean, variance, one, zero, 0, true))
		return nil
	})
	// Output:
	// float32[2] on cpu mean 11 std 12.73 [2 20]
	// float32[2] on cpu mean 50.5 std 70 [1 100]
	// float32[2 2] on cpu mean 0 std 1.155 [-1 -1 1 1]

}
