package nn

import (
	"fmt"
	"slices"

	"github.com/snug-ml/snug"
)

// The losses here compare x with a target y of the same shape, which is not broadcast, and
// save both. Either may want a gradient.

// MSE is the mean of (x − y)²; dx = 2·(x − y)/n = −dy.
func MSE(x, y *snug.Tensor) *snug.Tensor { return pairLoss("mse", x, y, (*snug.Tensor).Len, 0) }

// L1 is the mean of |x − y|; dx = sign(x − y)/n = −dy.
func L1(x, y *snug.Tensor) *snug.Tensor { return pairLoss("l1", x, y, (*snug.Tensor).Len, 0) }

// SmoothL1 is the mean of (x − y)²/(2·beta) where |x − y| < beta, and of |x − y| − beta/2
// elsewhere (Girshick, 2015); PyTorch's beta is 1.
func SmoothL1(x, y *snug.Tensor, beta float64) *snug.Tensor {
	if !(beta > 0) {
		x.Scope().Fail("smooth l1", fmt.Errorf("beta %v, more than 0 wanted", beta))
	}
	return pairLoss("smooth l1", x, y, (*snug.Tensor).Len, beta)
}

// BCEWithLogits is the mean of max(x, 0) − x·y + ln(1 + e^−|x|), the binary cross entropy
// of probabilities y and logits x of any size; dx = (sigmoid(x) − y)/n, dy = −x/n.
func BCEWithLogits(x, y *snug.Tensor) *snug.Tensor {
	return pairLoss("bce", x, y, (*snug.Tensor).Len, 0)
}

// KLDiv is the sum of y·(ln y − x) divided by the batch, the first dimension, for
// logarithms of probabilities x and probabilities y: PyTorch's "batchmean". dx = −y/n,
// dy = (ln y + 1 − x)/n.
func KLDiv(x, y *snug.Tensor) *snug.Tensor { return pairLoss("kl", x, y, batch, 0) }

func batch(x *snug.Tensor) int { return x.Dim(0) }

func pairLoss(name string, x, y *snug.Tensor, n func(*snug.Tensor) int, f float64) *snug.Tensor {
	if z := lacking(name, x, y); z != nil {
		return z
	}
	by := 1 / float64(max(1, n(x)))
	types := []snug.DType{x.DType(), y.DType()}
	return snug.Apply(&snug.Op{
		Name: name,
		Shape: func(in ...[]int) ([]int, error) {
			if !slices.Equal(in[0], in[1]) {
				return []int{}, fmt.Errorf("%w: x %v and y %v, which has to be the same", snug.ErrShape, in[0], in[1])
			}
			return []int{}, nil
		},
		Forward: func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor {
			c.Save("x", in[0])
			c.Save("y", in[1])
			return c.RunAs(name, wide(in[0]), []int{}, []float64{by, 0, f}, in...)
		},
		Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor {
			d := make([]*snug.Tensor, 2)
			for i := range d {
				if c.Needs(i) {
					d[i] = c.RunAs(name+" backward", types[i], c.Shape(i), []float64{by, float64(i), f}, c.Saved("x"), c.Saved("y"), dy)
				}
			}
			return d
		},
	}, x, y)
}
