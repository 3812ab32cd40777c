package nn

import (
	"fmt"
	"slices"

	"github.com/snug-ml/snug"
)

// LinearCrossEntropyConfig is a cross entropy's, and how much of the logits there is at a
// time.
type LinearCrossEntropyConfig struct {
	CrossEntropyConfig
	ChunkBytes int64 `json:"chunk_bytes"` // of logits, 16-bit ones with a float32 copy; one row at least
}

// DefaultLinearCrossEntropy has DefaultCrossEntropy's choices and 16 MiB of logits: with
// fewer, products over a large vocabulary wait for the weight's way through the caches.
func DefaultLinearCrossEntropy() LinearCrossEntropyConfig {
	return LinearCrossEntropyConfig{DefaultCrossEntropy(), 16 << 20}
}

// LinearCrossEntropy is CrossEntropy(x.Linear(weight, bias), target) without the logits in
// memory, under DefaultLinearCrossEntropy: for x [… width], weight [classes width], bias
// [classes] or nil, and target […]. It is for a language model's head, whose logits are
// often larger than all else.
func LinearCrossEntropy(x *snug.Tensor, weight, bias snug.Operand, target *snug.Tensor) *snug.Tensor {
	loss, _ := DefaultLinearCrossEntropy().Loss(x, weight, bias, target)
	return loss
}

// Loss is LinearCrossEntropy with all there is to it, and the count that
// CrossEntropyConfig.Loss has.
//
// Logits are computed for a chunk of rows at a time, whose number follows from ChunkBytes,
// the classes and the type of x. Saved are x, the parameters and one number a row; backward
// computes each chunk's logits once more, turns them into their gradient in place, and adds
// to one dweight: the time of four products in place of three, and of the weight's way to
// each chunk. The rows of dx have the bits that
// the whole logits give; the loss, dweight and dbias are sums in another order, equal to
// about the last digit.
//
// Under autocast it is a product: x, weight and bias come in the low type, and the weight's
// cast is the scope's only one. Where x is a 16-bit float, so are the logits, rounded as
// those of Linear are; the loss is float32, and dweight and dbias are added up in float32
// and rounded once, if the parameters are 16-bit, too.
func (c LinearCrossEntropyConfig) Loss(x *snug.Tensor, weight, bias snug.Operand, target *snug.Tensor) (loss, count *snug.Tensor) {
	if y := lacking("linear cross entropy", x, weight, target); y != nil {
		return y, y
	}
	s := x.Scope()
	if c.ChunkBytes < 1 {
		s.Fail("linear cross entropy", fmt.Errorf("%d bytes of logits at a time, 1 or more wanted", c.ChunkBytes))
	}
	f, weights, count := c.prepare(weight.In(s).Dim(0), target)
	in, names := []snug.Operand{x, weight}, []string{"x", "weight"}
	if bias != nil {
		in, names = append(in, bias), append(names, "bias")
	}
	in, names = append(in, target, count), append(names, "target", "count")
	for _, w := range weights {
		in, names = append(in, w), append(names, "class weight")
	}
	h := chunkedHead{f, int(c.ChunkBytes), names}
	return snug.Apply(&snug.Op{
		Name:     "linear cross entropy",
		Low:      true,
		Shape:    h.shape,
		Forward:  h.forward,
		Backward: h.backward,
	}, in...), count
}

// chunkedHead has the numbers of the cross entropy's kernels, the bytes of a chunk, and what
// the inputs are: x, weight, a bias that may be missing, target, count, and weights of
// classes that may be missing.
type chunkedHead struct {
	f     []float64
	bytes int
	names []string
}

func (h chunkedHead) target() int { return slices.Index(h.names, "target") }

// chunk is how many rows there are logits of at a time.
func (h chunkedHead) chunk(in []*snug.Tensor) int {
	size := in[0].DType().Size()
	if in[0].DType().Half() {
		size += snug.Float32.Size()
	}
	return max(1, h.bytes/max(1, in[1].Dim(0)*size))
}

func (h chunkedHead) shape(in ...[]int) ([]int, error) {
	x, w, target := in[0], in[1], in[h.target()]
	switch {
	case len(w) != 2 || len(x) == 0 || x[len(x)-1] != w[1] || !slices.Equal(x[:len(x)-1], target):
		return []int{}, fmt.Errorf("%w: x %v, weight %v and target %v; [… width], [classes width] and […] wanted", snug.ErrShape, x, w, target)
	case h.target() == 3 && !slices.Equal(in[2], w[:1]):
		return []int{}, fmt.Errorf("%w: weight %v and bias %v", snug.ErrShape, w, in[2])
	}
	return []int{}, nil
}

func (h chunkedHead) forward(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
	if x, w := in[0].DType(), in[1].DType(); x != w {
		c.Scope().Fail("linear cross entropy", fmt.Errorf("%w: x is %s and weight %s", snug.ErrDType, x, w))
	}
	rows, dtype, t, chunk := in[h.target()].Len(), wide(in[0]), h.target(), h.chunk(in)
	losses, lse := c.New(dtype, []int{(rows + chunk - 1) / chunk}), c.New(dtype, []int{rows})
	h.chunks(c, in, func(from, n int, logits, _, target *snug.Tensor) {
		out := []*snug.Tensor{losses.Narrow(0, from/chunk, 1), lse.Narrow(0, from, n)}
		c.Launch("cross entropy", h.f, out, append([]*snug.Tensor{logits, target}, in[t+1:]...)...)
	})
	loss := losses.Sum() // each has been divided by the count
	for i, name := range h.names {
		c.Save(name, in[i])
	}
	c.Save("lse", lse) // after the operations inside, which a second run then repeats
	return loss
}

// chunks calls fn for rows from one on, n of them, with their logits, all in one memory,
// and their parts of x and target. What fn makes is freed.
func (h chunkedHead) chunks(c *snug.Call, in []*snug.Tensor, fn func(from, n int, logits, x, target *snug.Tensor)) {
	t, chunk := h.target(), h.chunk(in)
	rows, classes, width := in[t].Len(), in[1].Dim(0), in[1].Dim(1)
	x, wt, target := in[0].Reshape(rows, width), in[1].T(), in[t].Reshape(rows)
	memory := c.New(x.DType(), []int{min(chunk, rows), classes})
	for from := 0; from < rows; from += chunk {
		snug.Chain(x, func(x *snug.Tensor) *snug.Tensor {
			n := min(chunk, rows-from)
			logits, part := memory.Narrow(0, 0, n), x.Narrow(0, from, n)
			c.Launch("matmul", nil, []*snug.Tensor{logits}, append([]*snug.Tensor{part, wt}, in[2:t]...)...)
			fn(from, n, logits, part, target.Narrow(0, from, n))
			return x
		})
	}
}

func (h chunkedHead) backward(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
	in, t := make([]*snug.Tensor, len(h.names)), h.target()
	for i, name := range h.names {
		in[i] = c.Saved(name)
	}
	lse, dtype, d := c.Saved("lse"), wide(in[0]), make([]*snug.Tensor, len(in))
	if c.Needs(0) {
		d[0] = c.New(in[0].DType(), []int{in[t].Len(), in[1].Dim(1)})
	}
	for i := 1; i < t; i++ {
		if c.Needs(i) {
			d[i] = c.New(dtype, c.Shape(i))
			c.Launch("fill", []float64{0}, d[i:i+1])
		}
	}
	h.chunks(c, in, func(from, n int, logits, x, target *snug.Tensor) {
		c.Launch("cross entropy backward", h.f, []*snug.Tensor{logits},
			append([]*snug.Tensor{logits, target, in[t+1], lse.Narrow(0, from, n), dy}, in[t+2:]...)...)
		if d[0] != nil {
			c.Launch("matmul", nil, []*snug.Tensor{d[0].Narrow(0, from, n)}, logits, in[1])
		}
		g := logits.Cast(dtype) // the same but for 16-bit floats
		if d[1] != nil {
			c.Launch("matmul add", nil, d[1:2], g.T(), x.Cast(dtype))
		}
		if t == 3 && d[2] != nil {
			d[2].AddInPlace(g.Sum(0))
		}
	})
	if d[0] != nil {
		d[0] = d[0].Reshape(c.Shape(0)...)
	}
	return d
}
