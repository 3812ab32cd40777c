package nn

import (
	"fmt"
	"slices"

	"github.com/snug-ml/snug"
)

// A loss is a tensor of one element, shape [], in float32 where its inputs are 16-bit
// floats. All but Correct are recorded.

// CrossEntropyConfig: zero values are none of it, and the mean.
type CrossEntropyConfig struct {
	Smoothing float64   `json:"smoothing"` // the part of each target that is spread over all classes, [0,1)
	Weight    []float64 `json:"weight"`    // of each class; nil: 1
	Ignore    []int64   `json:"ignore"`    // targets of rows that do not count
	Sum       bool      `json:"sum"`       // in place of the mean
}

// DefaultCrossEntropy ignores rows with target -100, as PyTorch does.
func DefaultCrossEntropy() CrossEntropyConfig { return CrossEntropyConfig{Ignore: []int64{-100}} }

// CrossEntropy is the mean of ln Σeˣ − x[target] over logits' rows, [… classes] with target
// […] of Int64, Int32 or Uint8, under DefaultCrossEntropy. Of no row that counts it is 0, as
// its gradients are. A target that is no class fails with snug.ErrIndex.
func CrossEntropy(logits, target *snug.Tensor) *snug.Tensor {
	loss, _ := DefaultCrossEntropy().Loss(logits, target)
	return loss
}

// Loss is a cross entropy with all there is to it, and a float64 that says how many rows
// count, or the sum of their weights: what the mean was divided by, and what a Window wants
// as the loss's count.
//
// With p = softmax(x), s the smoothing, w the weights of C classes and t the target, a row
// has (1−s)·w[t]·(ln Σeˣ − x[t]) + s/C·Σ w·(ln Σeˣ − x), and the gradient
// p·((1−s)·w[t] + s/C·Σw) − s/C·w − (1−s)·w[t] at t. Saved are the logits, the target and
// one number a row.
func (c CrossEntropyConfig) Loss(logits, target *snug.Tensor) (loss, count *snug.Tensor) {
	if y := lacking("cross entropy", logits, target); y != nil {
		return y, y
	}
	f, weight, count := c.prepare(logits.Dim(-1), target)
	names := []string{"logits", "target", "count", "weight"}[:3+len(weight)]
	loss = snug.Apply(&snug.Op{
		Name:  "cross entropy",
		Shape: classShape,
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			loss, lse := c.New(wide(in[0]), []int{}), c.New(wide(in[0]), in[1].Shape())
			c.Launch("cross entropy", f, []*snug.Tensor{loss, lse}, in...)
			for i, name := range names {
				c.Save(name, in[i])
			}
			c.Save("lse", lse)
			return loss
		},
		Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			in := []*snug.Tensor{}
			for _, name := range names {
				in = append(in, c.Saved(name))
			}
			d := make([]*snug.Tensor, len(in))
			d[0] = c.Run("cross entropy backward", c.Shape(0), f, slices.Insert(in, 3, c.Saved("lse"), dy)...)
			return d
		},
	}, append([]snug.Operand{logits, target, count}, weight...)...)
	return loss, count
}

// lacking is the result of an operation that has a nil among its operands, which it says; nil
// where it has none.
func lacking(op string, in ...snug.Operand) *snug.Tensor {
	for _, o := range in {
		if t, ok := o.(*snug.Tensor); o == nil || ok && t == nil || o == (*snug.Param)(nil) {
			return snug.Apply(&snug.Op{Name: op}, in...)
		}
	}
	return nil
}

// prepare is what the kernels of a cross entropy over classes get: their numbers, the
// classes' weights, if there are some, and the count.
func (c CrossEntropyConfig) prepare(classes int, target *snug.Tensor) (f []float64, weight []snug.Operand, count *snug.Tensor) {
	s := target.Scope()
	switch {
	case !(c.Smoothing >= 0 && c.Smoothing < 1):
		s.Fail("cross entropy", fmt.Errorf("smoothing %v, one in [0,1) wanted", c.Smoothing))
	case c.Weight != nil && len(c.Weight) != classes:
		s.Fail("cross entropy", fmt.Errorf("%w: %d weights for %d classes", snug.ErrShape, len(c.Weight), classes))
	case c.Weight != nil:
		weight = []snug.Operand{snug.Upload(s, c.Weight, classes)}
	}
	f = []float64{c.Smoothing, 0}
	if c.Sum {
		f[1] = 1
	}
	for _, t := range c.Ignore {
		f = append(f, float64(t))
	}
	return f, weight, classCount(classes, c.Ignore, append([]snug.Operand{target}, weight...)...)
}

// NLL is the mean of −x[target] over the rows of x, logarithms of probabilities [… classes],
// with target as for CrossEntropy, which is the better choice for logits. It saves the
// target alone.
func NLL(x, target *snug.Tensor) *snug.Tensor {
	if y := lacking("nll", x, target); y != nil {
		return y
	}
	ignore := DefaultCrossEntropy().Ignore
	dtype, f := x.DType(), []float64{0, 0, float64(ignore[0])}
	return snug.Apply(&snug.Op{
		Name:  "nll",
		Shape: classShape,
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			c.Save("target", in[1])
			c.Save("count", in[2])
			return c.RunAs("nll", wide(in[0]), []int{}, f, in...)
		},
		Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			return []*snug.Tensor{c.RunAs("nll backward", dtype, c.Shape(0), f, dy, c.Saved("target"), c.Saved("count")), nil, nil}
		},
	}, x, target, classCount(x.Dim(-1), ignore, target))
}

// Correct is how many rows of logits [… classes] have their largest element, the first of
// equals, at target […]: one float64, without a gradient.
func Correct(logits, target *snug.Tensor) *snug.Tensor {
	return snug.Apply(&snug.Op{
		Name:  "correct",
		Shape: classShape,
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			labels(c, in[1])
			return c.RunAs("correct", snug.Float64, []int{}, nil, in...)
		},
	}, logits, target)
}

// classCount is how many targets count, or the sum of their weights. One that is no class
// is an error.
func classCount(classes int, ignore []int64, in ...snug.Operand) *snug.Tensor {
	f := []float64{float64(classes)}
	for _, t := range ignore {
		f = append(f, float64(t))
	}
	return snug.Apply(&snug.Op{
		Name:  "class count",
		Shape: func(...[]int) ([]int, error) { return []int{}, nil },
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			labels(c, in[0])
			count, outside := c.New(snug.Float64, []int{}), c.New(snug.Int64, []int{2})
			c.Launch("class count", f, []*snug.Tensor{count, outside}, in...)
			// There is no value in dry runs, nor where a recomputed block needs none.
			if v, err := snug.Download[int64](outside); err == nil && v[0] != 0 {
				c.Scope().Fail("class count", fmt.Errorf("%w: target %d among %d classes", snug.ErrIndex, v[1], classes))
			}
			return count
		},
	}, in...)
}

func labels(c *snug.Call, t *snug.Tensor) {
	if d := t.DType(); d != snug.Int64 && d != snug.Int32 && d != snug.Uint8 {
		c.Scope().Fail("target", fmt.Errorf("%w: a target of %s; int64, int32 or uint8 wanted", snug.ErrDType, d))
	}
}

// classShape is that of a loss over rows of classes.
func classShape(in ...[]int) ([]int, error) {
	x, target := in[0], in[1]
	if len(x) == 0 || !slices.Equal(x[:len(x)-1], target) {
		return []int{}, fmt.Errorf("%w: x %v and target %v; [… classes] and […] wanted", snug.ErrShape, x, target)
	}
	return []int{}, nil
}

// wide is the type that a loss of x has.
func wide(x *snug.Tensor) snug.DType {
	if x.DType().Half() {
		return snug.Float32
	}
	return x.DType()
}
