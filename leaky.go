package snug

import "fmt"

// LeakyReLU is x where that is positive and slope·x elsewhere (Maas et al., 2013). The
// slope is 0 or more, so that the result's sign says which gradient it is.
func (x *Tensor) LeakyReLU(slope float64) *Tensor {
	op, _ := x.leaky("leaky relu", slope)
	return Apply(op, x)
}

// LeakyReLUInPlace overwrites x and returns it.
func (x *Tensor) LeakyReLUInPlace(slope float64) *Tensor {
	_, op := x.leaky("leaky relu", slope)
	return Apply(op, x)
}

// ELU is x where that is positive and α·(eˣ−1) elsewhere (Clevert et al., 2016), α 0 or
// more. With y the result, its gradient is 1 or y+α.
func (x *Tensor) ELU(alpha float64) *Tensor {
	op, _ := x.leaky("elu", alpha)
	return Apply(op, x)
}

// ELUInPlace overwrites x and returns it.
func (x *Tensor) ELUInPlace(alpha float64) *Tensor {
	_, op := x.leaky("elu", alpha)
	return Apply(op, x)
}

func (x *Tensor) leaky(name string, f float64) (apart, inPlace *Op) {
	if !(f >= 0) {
		x.s.Fail(name, fmt.Errorf("a factor of %v, 0 or more wanted", f))
	}
	return ofResult(name, f)
}
