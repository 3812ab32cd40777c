package optim

import (
	"fmt"

	"github.com/snug-ml/snug"
)

// A moment in Uint8 has one float32 scale for each block of 256 elements, its greatest
// size. Elements are coded as parts of that on a dynamic tree, which is finer for smaller
// ones: a mean is off by at most 0.8% of its block's scale, a square by 0.4% (Dettmers et
// al., 2022, "8-bit Optimizers via Block-wise Quantization"). Parameters of less than 4,096
// elements, biases and norms, keep float32 moments, as in the paper. One thing is not the
// paper's: a square that is not 0 is never coded as 0, whose root would make a giant step.
const (
	block8    = 256
	smallest8 = 4096
)

// adam8bit are Adam's states in 8 bits, 2.03 bytes a parameter in all.
func adam8bit(p *snug.Param) (kernel string, s []state, err error) {
	if p.DType() == snug.Float64 {
		return "", nil, fmt.Errorf("%w: it is float64, which moments in 8 bits have no use for", snug.ErrDType)
	}
	if p.Len() < smallest8 {
		return "adam", moments(p, snug.Float32, []string{"exp_avg", "exp_avg_sq"}), nil
	}
	scales := []int{(p.Len() + block8 - 1) / block8}
	return "adam 8bit", []state{
		{"exp_avg", snug.Uint8, p.Shape()}, {"exp_avg_scale", snug.Float32, scales},
		{"exp_avg_sq", snug.Uint8, p.Shape()}, {"exp_avg_sq_scale", snug.Float32, scales},
	}, nil
}
