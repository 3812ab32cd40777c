package snug

import "math"

// Init gives first values: for a shape, a function of an element's index; u draws numbers
// in [0,1) that belong to that element alone. It is called from several goroutines.
type Init func(shape []int) func(i int, u func() float64) float64

// Const is v everywhere.
func Const(v float64) Init {
	return func([]int) func(int, func() float64) float64 {
		return func(int, func() float64) float64 { return v }
	}
}

// Values are given, row-major; missing ones are 0.
func Values[T float32 | float64](v []T) Init {
	return func([]int) func(int, func() float64) float64 {
		return func(i int, _ func() float64) float64 {
			if i < len(v) {
				return float64(v[i])
			}
			return 0
		}
	}
}

// Uniform draws from [-bound, bound).
func Uniform(bound float64) Init {
	return func([]int) func(int, func() float64) float64 { return uniform(bound) }
}

// Normal draws with mean 0 and deviation std (Box and Muller, 1958).
func Normal(std float64) Init {
	return func([]int) func(int, func() float64) float64 { return normal(std) }
}

// KaimingUniform keeps the variance of a forward pass through a leaky ReLU of negative
// slope a (He et al., 2015): the bound is √(6 / ((1 + a²)·fan-in)).
func KaimingUniform(a float64) Init {
	return func(shape []int) func(int, func() float64) float64 {
		in, _ := fans(shape)
		return uniform(math.Sqrt(6 / ((1 + a*a) * in)))
	}
}

// KaimingNormal is the same with deviation √(2 / ((1 + a²)·fan)); out takes the fan-out,
// which keeps the variance of gradients, as torchvision's ResNets do.
func KaimingNormal(a float64, out bool) Init {
	return func(shape []int) func(int, func() float64) float64 {
		fan, fanOut := fans(shape)
		if out {
			fan = fanOut
		}
		return normal(math.Sqrt(2 / ((1 + a*a) * fan)))
	}
}

// XavierUniform has the bound gain·√(6 / (fan-in + fan-out)) (Glorot and Bengio, 2010).
func XavierUniform(gain float64) Init {
	return func(shape []int) func(int, func() float64) float64 {
		in, out := fans(shape)
		return uniform(gain * math.Sqrt(6/(in+out)))
	}
}

// XavierNormal has the deviation gain·√(2 / (fan-in + fan-out)).
func XavierNormal(gain float64) Init {
	return func(shape []int) func(int, func() float64) float64 {
		in, out := fans(shape)
		return normal(gain * math.Sqrt(2/(in+out)))
	}
}

func uniform(bound float64) func(int, func() float64) float64 {
	return func(_ int, u func() float64) float64 { return bound * (2*u() - 1) }
}

func normal(std float64) func(int, func() float64) float64 {
	return func(_ int, u func() float64) float64 {
		return std * math.Sqrt(-2*math.Log(1-u())) * math.Cos(2*math.Pi*u())
	}
}

// fans are a weight's numbers of inputs and outputs: [out, in, kernel...].
func fans(shape []int) (in, out float64) {
	if len(shape) < 2 {
		n := float64(max(1, numel(shape)))
		return n, n
	}
	field := numel(shape[2:])
	return float64(max(1, shape[1]*field)), float64(max(1, shape[0]*field))
}
