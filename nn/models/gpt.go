package models

import (
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
)

// GPTConfig is of a decoder-only transformer (Radford et al., 2019).
type GPTConfig struct {
	Vocabulary int     `json:"vocabulary"`
	Context    int     `json:"context"` // the most tokens that it sees
	Width      int     `json:"width"`
	Heads      int     `json:"heads"`
	Layers     int     `json:"layers"`
	Dropout    float64 `json:"dropout"`
	Tied       bool    `json:"tied"` // the head's weight is the embedding's
}

// GPT maps tokens [n t] of Int64 to logits [n t vocabulary].
type GPT struct {
	Tok, Pos *nn.Embedding
	Blocks   []*GPTBlock
	LN       *nn.LayerNorm
	Head     *nn.Linear

	dropout float64
}

// NewGPT begins with weights of deviation 0.02, and biases of 0.
func NewGPT(c GPTConfig) *GPT {
	if c.Heads < 1 || c.Width%c.Heads != 0 {
		panic(fmt.Sprintf("models: a GPT of width %d with %d heads; a multiple wanted", c.Width, c.Heads))
	}
	m := &GPT{Tok: nn.NewEmbedding(c.Vocabulary, c.Width), Pos: nn.NewEmbedding(c.Context, c.Width), LN: nn.NewLayerNorm(c.Width), dropout: c.Dropout}
	m.Tok.Weight = snug.NewParam(snug.Normal(0.02), c.Vocabulary, c.Width)
	m.Pos.Weight = snug.NewParam(snug.Normal(0.02), c.Context, c.Width)
	for range c.Layers {
		m.Blocks = append(m.Blocks, newGPTBlock(c))
	}
	m.Head = linear(c.Width, c.Vocabulary, false)
	if c.Tied {
		m.Head.Weight = m.Tok.Weight
	}
	return m
}

func (m *GPT) Forward(x *snug.Tensor) *snug.Tensor { return m.Head.Forward(m.Hidden(x)) }

// Loss is nn.CrossEntropy(m.Forward(x), target) for target [n t], up to rounding, without
// the logits in memory: see nn.LinearCrossEntropy.
func (m *GPT) Loss(x, target *snug.Tensor) *snug.Tensor {
	return nn.LinearCrossEntropy(m.Hidden(x), m.Head.Weight, nil, target)
}

// Hidden is what the head is applied to, [n t width].
func (m *GPT) Hidden(x *snug.Tensor) *snug.Tensor {
	s, t := x.Scope(), x.Dim(-1)
	if most := m.Pos.Weight.Shape()[0]; t > most {
		s.Fail("gpt", fmt.Errorf("%w: %d tokens for a context of %d", snug.ErrShape, t, most))
	}
	h := m.Tok.Forward(x).AddInPlace(m.Pos.Weight.In(s).Narrow(0, 0, t)).Dropout(m.dropout)
	fns := make([]func(*snug.Tensor) *snug.Tensor, len(m.Blocks))
	for i, b := range m.Blocks {
		fns[i] = block(b.Forward)
	}
	h = snug.Chain(h, fns...)
	return m.LN.Forward(h)
}

// GPTBlock is attention and an MLP, each added to its input and normalized before.
type GPTBlock struct {
	LN1 *nn.LayerNorm
	*nn.CausalSelfAttention
	LN2      *nn.LayerNorm
	FC1, FC2 *nn.Linear

	dropout float64
}

func newGPTBlock(c GPTConfig) *GPTBlock {
	a := nn.NewCausalSelfAttention(c.Width, c.Heads)
	a.QKV, a.Proj = linear(c.Width, 3*c.Width, true), linear(c.Width, c.Width, true)
	return &GPTBlock{
		LN1: nn.NewLayerNorm(c.Width), CausalSelfAttention: a, LN2: nn.NewLayerNorm(c.Width),
		FC1: linear(c.Width, 4*c.Width, true), FC2: linear(4*c.Width, c.Width, true), dropout: c.Dropout,
	}
}

func (b *GPTBlock) Forward(x *snug.Tensor) *snug.Tensor {
	x = snug.Chain(x, b.LN1.Forward, b.CausalSelfAttention.Forward).Dropout(b.dropout).AddInPlace(x)
	return snug.Chain(x, b.LN2.Forward, b.FC1.Forward, (*snug.Tensor).GELU, b.FC2.Forward).Dropout(b.dropout).AddInPlace(x)
}

func linear(in, out int, bias bool) *nn.Linear {
	l := nn.NewLinear(in, out, bias)
	l.Weight = snug.NewParam(snug.Normal(0.02), out, in)
	if bias {
		l.Bias = snug.NewParam(snug.Const(0), out)
	}
	return l
}
