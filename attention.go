package snug

import (
	"fmt"
	"slices"
)

// Attention is softmax(q·kᵀ/√d)·v for each head (Vaswani et al., 2017): q [b h t d], k and
// v [b h u d] give [b h t d]. causal lets a query see the keys up to its own place, and
// needs t = u. No more than a block of scores exists at a time: saved are the operands, the
// result and each row's log Σ exp, and backward makes the scores again (Dao et al., 2022).
func Attention(q, k, v Operand, causal bool) *Tensor {
	names := []string{"q", "k", "v"}
	return Apply(&Op{
		Name:      "attention",
		precision: low,
		cost:      func(in [][]int, out []int) float64 { return costOfAttention(out, in[1][2], causal) },
		Shape: func(in ...[]int) ([]int, error) {
			q, k, v := in[0], in[1], in[2]
			if len(q) != 4 || len(k) != 4 || !slices.Equal(k, v) || q[0] != k[0] || q[1] != k[1] || q[3] != k[3] || causal && q[2] != k[2] || k[2] == 0 && q[2] != 0 {
				return q, fmt.Errorf("%w: q %v, k %v and v %v, [b h t d] wanted", ErrShape, q, k, v)
			}
			return q, nil
		},
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			for i, name := range names {
				c.Save(name, in[i])
			}
			y := c.New(in[0].dtype, in[0].shape)
			c.Save("y", y)
			c.attention(y, in, causal)
			return y
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			var in, d []*Tensor
			for _, name := range names {
				t := c.Saved(name)
				in, d = append(in, t), append(d, c.New(t.dtype, t.shape))
			}
			c.attentionBackward(d, in, c.Saved("y"), dy, causal)
			return d
		},
	}, q, k, v)
}

// SelfAttention is Attention of x [b t 3·w], which holds q, k and v of some heads side by
// side, each as heads·d = w columns: [b t w]. It reads and writes them where they are.
func (x *Tensor) SelfAttention(heads int, causal bool) *Tensor {
	return Apply(opOf(x.s, selfAttention{heads, causal}), x)
}

type selfAttention struct {
	heads  int
	causal bool
}

func (a selfAttention) op() *Op {
	heads, causal := a.heads, a.causal
	parts := func(c *Call, x *Tensor) []*Tensor {
		p := make([]*Tensor, 3, 6)
		for i := range p {
			p[i] = c.heads(x, heads, x.shape[2]/3, i)
		}
		return p
	}
	return &Op{
		Name:      "self-attention",
		precision: low,
		cost:      func(in [][]int, out []int) float64 { return costOfAttention(out, in[0][1], causal) },
		Shape: func(in ...[]int) ([]int, error) {
			x := in[0]
			if len(x) != 3 || heads < 1 || x[2]%(3*heads) != 0 {
				return x, fmt.Errorf("%w: x %v and %d heads, [b t 3·heads·d] wanted", ErrShape, x, heads)
			}
			return []int{x[0], x[1], x[2] / 3}, nil
		},
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			x := in[0]
			c.Save("x", x)
			y := c.New(x.dtype, c.out)
			c.Save("y", y)
			c.attention(c.heads(y, heads, y.shape[2], 0), parts(c, x), causal)
			return y
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			x := c.Saved("x")
			dx := c.New(x.dtype, x.shape)
			y := c.heads(c.Saved("y"), heads, dy.shape[2], 0)
			c.attentionBackward(parts(c, dx), parts(c, x), y, c.heads(dy, heads, dy.shape[2], 0), causal)
			return c.gradient(dx)
		},
	}
}

// heads is a view [b h t d] of the i-th width columns of t [b t …].
func (c *Call) heads(t *Tensor, heads, width, i int) *Tensor {
	d, off := width/heads, i*width*t.strides[2]
	if t.Len() == 0 {
		off = 0
	}
	return c.view(t, c.dims(t.shape[0], heads, t.shape[1], d), c.dims(t.strides[0], d*t.strides[2], t.strides[1], t.strides[2]), off)
}

// attention writes y, and saves its rows' log Σ exp as "sums".
func (c *Call) attention(y *Tensor, in []*Tensor, causal bool) {
	dtype := y.dtype
	if dtype.Half() {
		dtype = Float32
	}
	sums := c.New(dtype, y.shape[:3])
	c.Save("sums", sums)
	c.Launch("attention", causalNumber(causal), []*Tensor{y, sums}, in...)
}

func (c *Call) attentionBackward(d, in []*Tensor, y, dy *Tensor, causal bool) {
	c.Launch("attention backward", causalNumber(causal), d, append(in, y, c.Saved("sums"), dy)...)
}

// costOfAttention is that of both products, over so many keys.
func costOfAttention(out []int, keys int, causal bool) float64 {
	n := 2 * float64(numel(out)) * float64(keys)
	if causal {
		n /= 2
	}
	return n
}

func causalNumber(causal bool) []float64 {
	if causal {
		return []float64{1}
	}
	return []float64{0}
}
