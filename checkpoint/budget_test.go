package checkpoint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
)

// folds counts its runs, and adds up every n elements: the more there are, the dearer are
// the bytes of its result.
type folds map[string]int

func (f folds) run(name string, n int, x *snug.Tensor) *snug.Tensor {
	return snug.Apply(&snug.Op{
		Name:  name,
		Shape: func(in ...[]int) ([]int, error) { return []int{in[0][0] / n}, nil },
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			c.Save("x", in[0])
			return snug.Map(c.Scope(), "fold", []int{in[0].Dim(0) / n}, func(dst []float32, src ...[]float32) error {
				f[name]++
				for i := range dst {
					dst[i] = 0
					for _, v := range src[0][i*n : (i+1)*n] {
						dst[i] += v * v
					}
				}
				return nil
			}, in[0])
		},
		Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			x := c.Saved("x")
			return []*snug.Tensor{dy.Reshape(-1, 1).Expand(dy.Dim(0), n).Reshape(x.Dim(0)).Mul(x).MulScalar(2)}
		},
	}, x)
}

// Of 64 bytes or so those stay that are the dearest, of whichever block, and of equals those
// of the earlier one.
func TestBudgetKeepsTheDearest(t *testing.T) {
	const elements = 64
	// Two blocks: a halves, b keeps the size, c takes a quarter; what c gives nothing reads.
	model := func(f folds, x *snug.Tensor) *snug.Tensor {
		first := snug.Block(func(x *snug.Tensor) *snug.Tensor { return f.run("c", 4, f.run("b", 1, f.run("a", 2, x))) }, x)
		second := snug.Block(func(x *snug.Tensor) *snug.Tensor { return f.run("f", 1, f.run("e", 4, f.run("d", 1, x))) }, x)
		return first.Sum().Add(second.Sum())
	}
	run := func(f folds, o ...snug.Option) (grad []float64, held int64) {
		d, err := snug.Open(testdevice.Name, snug.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := snug.Upload(s, waves(elements, 1), elements).Track()
			if err := model(f, x).Backward(); err != nil {
				return err
			}
			grad, err = snug.Download[float64](x.Grad())
			return err
		}, append(o, checkpoint.Report(func(r snug.Recomputed) { held += r.Held - elements*4 }))...); err != nil {
			t.Fatal(err)
		}
		if n := d.Memory().Stats().Allocated; n != 0 {
			t.Errorf("%d bytes leak", n)
		}
		return grad, held
	}
	plain, _ := run(folds{})
	// Their results are a 128 bytes, b 128, d 256, e 64; the elements read and written for
	// each byte: a 3/4, b and d 1/2, e 5/4.
	for _, c := range []struct {
		budget, held int64
		once         string // what does not run again
	}{
		{0, 0, ""}, {63, 0, ""}, {64, 64, "e"}, {127, 64, "e"},
		{128, 64, "e"}, // a was there first, and had to go
		{192, 192, "ae"}, {319, 192, "ae"}, {320, 320, "abe"}, {575, 320, "abe"}, {576, 576, "abde"}, {1 << 40, 576, "abde"},
	} {
		f := folds{}
		got, held := run(f, checkpoint.Every(1), checkpoint.Budget(c.budget))
		if !slices.Equal(got, plain) {
			t.Errorf("%d bytes: another gradient", c.budget)
		}
		for _, op := range []string{"a", "b", "d", "e"} {
			if want := 2 - strings.Count(c.once, op); f[op] != want {
				t.Errorf("%d bytes: %s ran %d times, want %d", c.budget, op, f[op], want)
			}
		}
		if held != c.held || f["c"] != 1 || f["f"] != 1 {
			t.Errorf("%d bytes: %d held, want %d; runs %v", c.budget, held, c.held, f)
		}
	}
}

// In a GPT a product's bytes are the dearer the longer its sums, and no budget is exceeded:
// from none to all it goes from Every's memory and time to the plain run's.
func TestBudgetOfAModel(t *testing.T) {
	measure := func(o ...snug.Option) (held int64, requests, peak int64) {
		m := models.NewGPT(models.GPTConfig{Vocabulary: 64, Context: 64, Width: 64, Heads: 4, Layers: 4})
		r := newTrained(t, testdevice.Dry, m, func(s *snug.Scope, step int) (x, y *snug.Tensor) {
			return classes(s, 64, step, 8, 64), classes(s, 64, step+1, 8, 64)
		}, append(o, checkpoint.Report(func(r snug.Recomputed) { held += r.Held }))...)
		before := r.dev.Memory().Stats().Requests
		if err := r.train(0, nil); err != nil {
			t.Fatal(err)
		}
		st := r.dev.Memory().Stats()
		return held, st.Requests - before, st.Peak.Allocated
	}
	_, plain, plainPeak := measure()
	least, most, leastPeak := measure(checkpoint.Every(1))
	lastHeld, last := least, most
	for _, budget := range []int64{0, 100 << 10, 1 << 20, 3 << 20, 6 << 20, 1 << 30} {
		held, requests, peak := measure(checkpoint.Every(1), checkpoint.Budget(budget))
		if held-least > budget || held < lastHeld || requests > last+4 || peak > plainPeak {
			t.Errorf("%d bytes: %d held beside %d of arguments, %d allocations after %d", budget, held-least, least, requests, last)
		}
		t.Logf("%10d bytes: %8d held, %d allocations (plain %d), peak %d (%d to %d)", budget, held-least, requests, plain, peak, leastPeak, plainPeak)
		lastHeld, last = held, requests
	}
	if lastHeld-least < 4<<20 || last >= most {
		t.Errorf("with enough %d bytes are held, %d allocations of %d", lastHeld, last, most)
	}
}

func TestBudgetErrors(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for says, o := range map[string][]snug.Option{
		"a checkpoint policy that keeps -1 bytes": {checkpoint.Budget(-1)},
		"two options for a checkpoint policy":     {checkpoint.Budget(1), checkpoint.Products()},
	} {
		if err := d.Train(bg, func(*snug.Scope) error { return nil }, o...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// 2 MiB are enough for the longest product of four.
func ExampleBudget() {
	d, err := snug.Open("dry:cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	m := models.NewGPT(models.GPTConfig{Vocabulary: 64, Context: 64, Width: 64, Heads: 4, Layers: 4})
	if err := nn.Init(bg, d, m, nil); err != nil {
		fmt.Println(err)
		return
	}
	peak := func(o ...snug.Option) int64 {
		d.Memory().ResetPeak()
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := snug.Zeros(s, snug.Int64, 32, 64)
			return nn.CrossEntropy(m.Forward(x), x).Backward()
		}, o...); err != nil {
			fmt.Println(err)
		}
		for _, p := range nn.Params(m) {
			p.Zero()
		}
		return d.Memory().Stats().AtPeak[memory.Activations]
	}
	least := peak(checkpoint.Every(1))
	some := peak(checkpoint.Every(1), checkpoint.Budget(4<<20))
	fmt.Println("between:", least < some && some <= least+4<<20 && some < peak())
	// Output: between: true
}
