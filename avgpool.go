package snug

import "fmt"

// AvgPool2D is the mean over windows that lie as MaxPool2D's do. countPadding counts the
// zeros of the padding as elements, as PyTorch does if not told otherwise; what a window
// has beyond that, under ceil, never counts. It saves nothing.
func (x *Tensor) AvgPool2D(kernel, stride, padding int, ceil, countPadding bool) *Tensor {
	p := pool{kernel, stride, padding, ceil}
	count := 0.0
	if countPadding {
		count = 1
	}
	return Apply(meanOp("average pool", p.shape, []float64{float64(kernel), float64(stride), float64(padding), count}), x)
}

// AdaptiveAvgPool2D cuts x [… h w] into height × width windows, which overlap by one where
// it does not divide, and is the mean over each: [… height width]. It saves nothing.
func (x *Tensor) AdaptiveAvgPool2D(height, width int) *Tensor {
	return Apply(meanOp("adaptive average pool", func(in ...[]int) ([]int, error) {
		x := in[0]
		n := len(x) - 2
		if n < 0 || height < 1 || width < 1 || x[n] == 0 || x[n+1] == 0 {
			return x, fmt.Errorf("%w: x %v into %d by %d windows", ErrShape, x, height, width)
		}
		return append(append([]int{}, x[:n]...), height, width), nil
	}, nil), x)
}

// meanOp's numbers are none for adaptive windows.
func meanOp(name string, shape func(in ...[]int) ([]int, error), numbers []float64) *Op {
	return &Op{
		Name:  name,
		Shape: shape,
		Forward: func(c *Call, in ...*Tensor) *Tensor {
			to, _ := shape(in[0].shape)
			return c.Run("average pool", to, numbers, in[0])
		},
		Backward: func(c *Call, dy *Tensor) []*Tensor {
			return c.gradient(c.Run("average pool backward", c.Shape(0), numbers, dy))
		},
	}
}
