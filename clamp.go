package snug

import "fmt"

// Clamp is x, but no less than min and no more than max, which may be infinite. The
// gradient passes strictly between them; the result says where that is.
func (x *Tensor) Clamp(min, max float64) *Tensor {
	op, _ := x.clamp(min, max)
	return Apply(op, x)
}

// ClampInPlace overwrites x and returns it.
func (x *Tensor) ClampInPlace(min, max float64) *Tensor {
	_, op := x.clamp(min, max)
	return Apply(op, x)
}

func (x *Tensor) clamp(min, max float64) (apart, inPlace *Op) {
	if !(min <= max) {
		x.s.Fail("clamp", fmt.Errorf("min %v and max %v", min, max))
	}
	return ofResult("clamp", min, max)
}

// ReLU6 is Clamp to 0 … 6 (Howard et al., 2017).
func (x *Tensor) ReLU6() *Tensor { return x.Clamp(0, 6) }

// ReLU6InPlace overwrites x and returns it.
func (x *Tensor) ReLU6InPlace() *Tensor { return x.ClampInPlace(0, 6) }

// Hardswish is x·ReLU6(x+3)/6 (Howard et al., 2019). Its gradient, 0 below −3, 1 above 3
// and (2x+3)/6 between, needs x.
func (x *Tensor) Hardswish() *Tensor { return Apply(hardswish, x) }

// Abs is |x|. Its gradient, the sign, needs x and is 0 at 0.
func (x *Tensor) Abs() *Tensor { return Apply(abs, x) }

var hardswish, abs = ofInput("hardswish"), ofInput("abs")
