package nn_test

import (
	ctx "context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	values "github.com/snug-ml/snug/internal/golden"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optest"
)

// lossCase is a case of PyTorch's losses as optest takes it.
func lossCase(t testing.TB, name string) *optest.Reference {
	t.Helper()
	f := values.Load(t, "losses")
	array := func(role string) optest.Array {
		a, _ := f.Tensor(name, role)
		v := a.F
		for _, n := range a.I {
			v = append(v, float64(n))
		}
		return optest.Array{Shape: a.Shape, Values: v}
	}
	r := &optest.Reference{Output: array("out0"), Fed: array("g")}
	for i := range 2 {
		r.Inputs = append(r.Inputs, array(fmt.Sprint("in", i)))
		r.Gradients = append(r.Gradients, array(fmt.Sprint("gin", i)))
	}
	if len(r.Output.Values) != 1 {
		t.Fatalf("no case %q", name)
	}
	return r
}

func loss(f func(x, y *snug.Tensor) *snug.Tensor) func(...*snug.Tensor) *snug.Tensor {
	return func(x ...*snug.Tensor) *snug.Tensor { return f(x[0], x[1]) }
}

func TestCrossEntropy(t *testing.T) {
	with := func(c nn.CrossEntropyConfig) func(...*snug.Tensor) *snug.Tensor {
		return func(x ...*snug.Tensor) *snug.Tensor { l, _ := c.Loss(x[0], x[1]); return l }
	}
	w, _ := values.Load(t, "losses").Tensor("cross_entropy_weight", "class_weight")
	classes := func(n int) []optest.Input { return []optest.Input{{}, optest.Below(n)} }
	shapes := [][][]int{{{6, 5}, {6}}, {{2, 3, 5}, {2, 3}}, {{5}, {}}, {{1, 5}, {1}}, {{0, 5}, {0}}}

	optest.Run(t, optest.Op{Name: "plain", F: loss(nn.CrossEntropy), Inputs: classes(5), Shapes: shapes,
		Large: [][]int{{200, 700}, {200}}, Reference: lossCase(t, "cross_entropy")})
	optest.Run(t, optest.Op{Name: "one class", F: loss(nn.CrossEntropy), Inputs: classes(1), Shapes: [][][]int{{{3, 1}, {3}}}})
	optest.Run(t, optest.Op{Name: "smooth", F: with(nn.CrossEntropyConfig{Smoothing: 0.1}), Inputs: classes(5), Shapes: shapes,
		Reference: lossCase(t, "cross_entropy_smooth")})
	optest.Run(t, optest.Op{Name: "ignore", F: loss(nn.CrossEntropy), Inputs: classes(5), Reference: lossCase(t, "cross_entropy_ignore")})
	optest.Run(t, optest.Op{Name: "some ignored", F: with(nn.CrossEntropyConfig{Ignore: []int64{0, 3}}), Inputs: classes(5), Shapes: shapes})
	optest.Run(t, optest.Op{Name: "weight", F: with(nn.CrossEntropyConfig{Weight: w.F}), Inputs: classes(7), Reference: lossCase(t, "cross_entropy_weight")})
	optest.Run(t, optest.Op{Name: "everything", Inputs: classes(5), Shapes: shapes,
		F: with(nn.CrossEntropyConfig{Weight: []float64{0.5, 2, 1, 0, 3}, Smoothing: 0.25, Ignore: []int64{2}})})
	optest.Run(t, optest.Op{Name: "sum", F: with(nn.CrossEntropyConfig{Sum: true}), Inputs: classes(5), Shapes: shapes,
		Reference: lossCase(t, "cross_entropy_sum")})
	for _, d := range []snug.DType{snug.Int32, snug.Uint8} {
		optest.Run(t, optest.Op{Name: d.String(), F: loss(nn.CrossEntropy), Shapes: shapes[:1],
			Inputs: []optest.Input{{}, {DType: d, Draw: optest.Below(5).Draw}}})
	}
}

func TestNLL(t *testing.T) {
	optest.Run(t, optest.Op{Name: "nll", F: loss(nn.NLL), Inputs: []optest.Input{{}, optest.Below(5)},
		Shapes: [][][]int{{{6, 5}, {6}}, {{2, 3, 5}, {2, 3}}, {{0, 5}, {0}}}, Large: [][]int{{9000, 5}, {9000}}})
	optest.Run(t, optest.Op{Name: "log softmax", Inputs: []optest.Input{{}, optest.Below(7)}, Reference: lossCase(t, "nll"),
		F: loss(func(x, y *snug.Tensor) *snug.Tensor { return nn.NLL(x.LogSoftmax(-1), y) })})
}

// pairs are shapes of x and y.
var pairs = [][][]int{{{3, 4, 2}, {3, 4, 2}}, {{7}, {7}}, {{}, {}}, {{1, 1}, {1, 1}}, {{2, 0}, {2, 0}}}

func TestPairLosses(t *testing.T) {
	large := [][]int{{300, 200}, {300, 200}}
	apart := []optest.Input{optest.Uniform(-3, -1.2), optest.Uniform(-0.9, 3)} // no kink of L1 between
	optest.Run(t, optest.Op{Name: "mse", F: loss(nn.MSE), Shapes: pairs, Large: large, Reference: lossCase(t, "mse")})
	optest.Run(t, optest.Op{Name: "l1", F: loss(nn.L1), Shapes: pairs, Large: large, Inputs: apart, Reference: lossCase(t, "l1")})
	for _, beta := range []float64{0.25, 1.7} {
		huber := loss(func(x, y *snug.Tensor) *snug.Tensor { return nn.SmoothL1(x, y, beta) })
		optest.Run(t, optest.Op{Name: fmt.Sprint("smooth l1, ", beta), F: huber, Shapes: pairs, Large: large, Inputs: apart})
	}
	optest.Run(t, optest.Op{Name: "smooth l1", F: loss(func(x, y *snug.Tensor) *snug.Tensor { return nn.SmoothL1(x, y, 1) }), Reference: lossCase(t, "smooth_l1")})
	optest.Run(t, optest.Op{Name: "bce", F: loss(nn.BCEWithLogits), Shapes: pairs, Large: large,
		Inputs: []optest.Input{{}, optest.Uniform(0, 1)}, Reference: lossCase(t, "bce_with_logits")})
	optest.Run(t, optest.Op{Name: "kl", F: loss(nn.KLDiv), Shapes: pairs, Large: large,
		Inputs: []optest.Input{optest.Uniform(-3, 0), optest.Uniform(0.125, 1)}})
	optest.Run(t, optest.Op{Name: "kl softmax", Reference: lossCase(t, "kl_div_batchmean"),
		F: loss(func(x, y *snug.Tensor) *snug.Tensor { return nn.KLDiv(x.LogSoftmax(-1), y.Softmax(-1)) })})
}

// Where nothing counts the loss and its gradients are 0, and so is the count.
func TestNothingCounts(t *testing.T) {
	d := open(t)
	for name, c := range map[string]nn.CrossEntropyConfig{
		"mean": nn.DefaultCrossEntropy(), "sum": {Ignore: []int64{-100}, Sum: true},
		"smooth": {Ignore: []int64{-100}, Smoothing: 0.1}, "weights of 0": {Weight: []float64{1, 0, 1}, Ignore: []int64{-100}},
	} {
		err := d.Train(t.Context(), func(s *snug.Scope) error {
			x := snug.Upload(s, []float32{1, 2, float32(math.Inf(1)), 4, 5, 6}, 2, 3).Track()
			target := []int{-100, -100}
			if c.Weight != nil {
				target[1] = 1
			}
			l, n := c.Loss(x, snug.Upload(s, target, 2))
			if v, err := l.Item(); err != nil || v != 0 {
				t.Error(name, "loss", v, err)
			}
			if v, err := n.Item(); err != nil || v != 0 {
				t.Error(name, "count", v, err)
			}
			if err := l.Backward(); err != nil {
				return err
			}
			g, err := snug.Download[float32](x.Grad())
			for _, v := range g {
				if v != 0 {
					t.Error(name, "gradient", g)
				}
			}
			return err
		})
		if err != nil {
			t.Error(name, err)
		}
	}
}

func TestCountOfRows(t *testing.T) {
	d := open(t)
	for want, c := range map[float64]nn.CrossEntropyConfig{
		3: {Ignore: []int64{-100}}, 2: {Ignore: []int64{-100, 0}}, 0.75: {Ignore: []int64{-100}, Weight: []float64{0.25, 8, 0.25}},
	} {
		if err := d.Infer(t.Context(), func(s *snug.Scope) error {
			_, n := c.Loss(snug.Zeros(s, snug.Float32, 2, 2, 3), snug.Upload(s, []int{0, -100, 2, 2}, 2, 2))
			if got, err := n.Item(); err != nil || got != want {
				t.Error(got, err, "want", want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestCrossEntropyRefuses(t *testing.T) {
	d := open(t)
	for _, c := range []struct {
		config nn.CrossEntropyConfig
		shape  []int
		target []int
		err    error
		text   string
	}{
		{nn.DefaultCrossEntropy(), []int{2, 3}, []int{2, 3}, snug.ErrIndex, "target 3 among 3 classes, at loss_test.go:"},
		{nn.DefaultCrossEntropy(), []int{2, 3}, []int{2, -1}, snug.ErrIndex, "target -1 among 3 classes"},
		{nn.CrossEntropyConfig{}, []int{2, 3}, []int{2, -100}, snug.ErrIndex, "target -100 among 3 classes"},
		{nn.DefaultCrossEntropy(), []int{2, 3}, []int{1, 1, 1}, snug.ErrShape, "x [2 3] and target [3]"},
		{nn.CrossEntropyConfig{Smoothing: 1}, []int{2, 3}, []int{1, 1}, nil, "smoothing 1"},
		{nn.CrossEntropyConfig{Smoothing: math.NaN()}, []int{2, 3}, []int{1, 1}, nil, "smoothing NaN"},
		{nn.CrossEntropyConfig{Weight: []float64{1, 2}}, []int{2, 3}, []int{1, 1}, snug.ErrShape, "2 weights for 3 classes"},
	} {
		err := d.Train(t.Context(), func(s *snug.Scope) error {
			l, _ := c.config.Loss(snug.Zeros(s, snug.Float32, c.shape...), snug.Upload(s, c.target, len(c.target)))
			if len(l.Shape()) != 0 {
				t.Error("shape", l.Shape())
			}
			return nil
		})
		if err == nil || c.err != nil && !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v", c, err)
		}
	}
	err := d.Infer(t.Context(), func(s *snug.Scope) error {
		nn.CrossEntropy(snug.Zeros(s, snug.Float32, 2, 3), snug.Zeros(s, snug.Float32, 2))
		return nil
	})
	if !errors.Is(err, snug.ErrDType) {
		t.Error(err)
	}
	err = d.Infer(t.Context(), func(s *snug.Scope) error {
		nn.MSE(snug.Zeros(s, snug.Float32, 2, 3), snug.Zeros(s, snug.Float32, 3))
		return nil
	})
	if !errors.Is(err, snug.ErrShape) {
		t.Error(err)
	}
}

// Cross entropy keeps the logits and one number a row; in a scope that does not record,
// nothing.
func TestCrossEntropySaves(t *testing.T) {
	d := open(t)
	allocated := func(run func(context, func(*snug.Scope) error, ...snug.Option) error) (n int64) {
		if err := run(t.Context(), func(s *snug.Scope) error {
			x, y := snug.Zeros(s, snug.Float32, 512, 1024).Track(), snug.Zeros(s, snug.Int64, 512)
			before := d.Memory().Stats().Allocated
			nn.CrossEntropy(x, y)
			n = d.Memory().Stats().Allocated - before
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// The loss and the count stay with the scope; 512 bytes are the smallest block.
	if got := allocated(d.Train); got != 512*4+2*512 {
		t.Errorf("training holds %d bytes", got)
	}
	if got := allocated(d.Infer); got != 2*512 {
		t.Errorf("evaluation holds %d bytes", got)
	}
}

func TestCorrect(t *testing.T) {
	d := open(t)
	nan := float32(math.NaN())
	x := []float32{1, 3, 2, 5, 5, 4, -1, -2, -3, 1, nan, 2, 7, 8, 9}
	for _, dtype := range []snug.DType{snug.Float32, snug.Float64, snug.BFloat16, snug.Float16} {
		if err := d.Infer(t.Context(), func(s *snug.Scope) error {
			logits := snug.Upload(s, x, 5, 3).Cast(dtype)
			for want, target := range [][]int{{0, 1, 1, 0, -100}, {1, 1, 1, 2, 0}, {1, 1, 1, 1, 1}, {1, 0, 0, 2, 1}, {1, 0, 0, 1, 1}, {1, 0, 0, 1, 2}} {
				if got, err := nn.Correct(logits, snug.Upload(s, target, 5)).Item(); err != nil || got != float64(want) {
					t.Error(dtype, target, got, err)
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// A language model's head: 256 rows of 50257 classes.
func BenchmarkCrossEntropy(b *testing.B) {
	d := open(b)
	const rows, classes = 256, 50257
	for b.Loop() {
		if err := d.Train(b.Context(), func(s *snug.Scope) error {
			x := snug.Full(s, 0.5, snug.Float32, rows, classes).Track()
			return nn.CrossEntropy(x, snug.Zeros(s, snug.Int64, rows)).Backward()
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(d.Memory().Stats().Peak.Allocated), "peak-B")
}

// The mean goes over the rows that count, and the loss says how many those are.
func ExampleCrossEntropyConfig_Loss() {
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	err = d.Infer(ctx.Background(), func(s *snug.Scope) error {
		logits := snug.Zeros(s, snug.Float32, 4, 10)
		target := snug.Upload(s, []int{3, -100, 0, -100}, 4)
		loss, count := nn.DefaultCrossEntropy().Loss(logits, target)
		l, err := loss.Item()
		if err != nil {
			return err
		}
		n, err := count.Item()
		fmt.Printf("%.4f over %v rows\n", l, n)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 2.3026 over 2 rows
}
