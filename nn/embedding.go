package nn

import "github.com/snug-ml/snug"

// Embedding gives the rows of a table that indices name: Int64 or Int32 [n…] to [n… width].
type Embedding struct {
	Weight  *snug.Param // [rows width]
	Padding int         // the row without a gradient; -1: none
}

// NewEmbedding draws rows from a normal distribution with mean 0 and variance 1.
func NewEmbedding(rows, width int) *Embedding {
	return &Embedding{Weight: snug.NewParam(snug.Normal(1), rows, width), Padding: -1}
}

// NewPaddedEmbedding has one row, of zeros, that stays as it is.
func NewPaddedEmbedding(rows, width, padding int) *Embedding {
	zero := func(shape []int) func(int, func() float64) float64 {
		draw := snug.Normal(1)(shape)
		return func(i int, u func() float64) float64 {
			if i/width == padding {
				return 0
			}
			return draw(i, u)
		}
	}
	return &Embedding{Weight: snug.NewParam(zero, rows, width), Padding: padding}
}

func (l *Embedding) Forward(index *snug.Tensor) *snug.Tensor {
	return snug.Layer(l, func(index *snug.Tensor) *snug.Tensor { return snug.Embedding(l.Weight, index, l.Padding) }, index)
}
