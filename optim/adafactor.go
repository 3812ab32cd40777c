package optim

import (
	"iter"
	"math"

	"github.com/snug-ml/snug"
)

// AdafactorConfig is of Adafactor without a first moment, as the paper proposes where memory
// is short and other libraries have it by default (Shazeer and Stern, 2018). The rate of a
// step is LR; a Relative one is at most 1/√t and times max(Eps2, root mean square of the
// weights), so that LR is a part of them. WeightDecay is taken from the weights, as AdamW's
// is.
type AdafactorConfig struct {
	LR          float64  `json:"lr"`
	Relative    bool     `json:"relative"`
	Beta2Decay  float64  `json:"beta2_decay"` // of step t β₂ is 1 − t to the power of −Beta2Decay
	Eps1        float64  `json:"eps1"`        // added to squares of gradients
	Eps2        float64  `json:"eps2"`
	Clip        float64  `json:"clip"` // the greatest root mean square of a change, before the rate
	WeightDecay float64  `json:"weight_decay"`
	Rounding    Rounding `json:"rounding"`
}

// DefaultAdafactor is the paper's proposal.
func DefaultAdafactor() AdafactorConfig {
	return AdafactorConfig{LR: 1e-2, Relative: true, Beta2Decay: 0.8, Eps1: 1e-30, Eps2: 1e-3, Clip: 1}
}

// NewAdafactor needs means over rows and columns of a matrix in place of its second moment:
// 4·(rows + columns) bytes, less than 0.02 a parameter for [512, 512] and larger. All
// dimensions but the first are columns: the weight of a convolution [out, in, h, w] is the
// matrix [out, in·h·w]. (PyTorch takes each [h, w] for a matrix, whose means are two thirds
// of a 3×3 window.) Vectors have the whole moment, 4 bytes a parameter. Beside the state
// the optimizer keeps what a step works in: for the largest matrix 8 bytes a column for
// each 256 rows, and a row for each 1,024 columns.
func NewAdafactor(p iter.Seq2[string, *snug.Param], c AdafactorConfig, g ...Group) (Optimizer, error) {
	relative := 0.0
	if c.Relative {
		relative = 1
	}
	return wrap(newBase(p, rule{
		name: "adafactor", layout: adafactor, scratch: adafactorScratch, rounding: c.Rounding,
		lr: c.LR, decay: c.WeightDecay, groups: g,
		aboveZero: map[string]float64{"Eps1": c.Eps1, "Clip": c.Clip, "Beta2Decay": c.Beta2Decay},
		notBelow0: map[string]float64{"Eps2": c.Eps2},
		args: func(o *base, lr, decay float64) []float64 {
			t := float64(o.steps)
			rate := lr
			if c.Relative {
				rate = min(lr, 1/math.Sqrt(t))
			}
			return []float64{rate, 1 - lr*decay, 1 - math.Pow(t, -c.Beta2Decay), c.Eps1, c.Eps2, c.Clip, relative, tileRows, tileCols}
		},
	}))
}

// Tiles are what threads take, and sums are cut where they end.
const tileRows, tileCols = 256, 1024

func matrixOf(p *snug.Param) (rows, cols int, ok bool) {
	shape := p.Shape()
	if len(shape) < 2 || p.Len() == 0 {
		return 0, 0, false
	}
	rows, cols = shape[0], p.Len()/shape[0]
	return rows, cols, rows > 1 && cols > 1
}

func adafactor(p *snug.Param) (kernel string, s []state, err error) {
	whole := moments(p, snug.Float32, []string{"exp_avg_sq"})
	if rows, cols, ok := matrixOf(p); ok {
		d := whole[0].dtype
		return "adafactor", []state{{"exp_avg_sq_row", d, []int{rows}}, {"exp_avg_sq_col", d, []int{cols}}}, nil
	}
	return "adafactor vector", whole, nil
}

// adafactorScratch is for partial sums of each row and column, and two of each tile.
func adafactorScratch(p *snug.Param) int {
	parts := func(n, of int) int { return (n + of - 1) / of }
	rows, cols, ok := matrixOf(p)
	if !ok {
		return 2 * parts(p.Len(), tileRows*tileCols)
	}
	down, across := parts(rows, tileRows), parts(cols, tileCols)
	return across*rows + down*cols + 2*down*across
}
