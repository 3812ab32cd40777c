package host

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

func init() {
	register("softmax", run(softmax[float32]), run(softmax[float64]))
	register("softmax backward", run(softmaxBackward[float32]), run(softmaxBackward[float64]))
	register("log softmax", run(logSoftmax[float32]), run(logSoftmax[float64]))
	register("log softmax backward", run(logSoftmaxBackward[float32]), run(logSoftmaxBackward[float64]))
}

// softmax: F: n, inner, as lanes has them. Lanes of neighbours are worked on side by side.
func softmax[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	lanes(a, a.Out[0].Len(), n, inner, func(at, _, side int) {
		if inner == 1 {
			softmaxRow(y[at:at+n], x[at:at+n])
			return
		}
		top, sum := greatest(x, at, n, inner, side), [64]float64{}
		for j := range n {
			from := at + j*inner
			out := y[from : from+side]
			for i, v := range x[from : from+side] {
				out[i] = v - top[i]
			}
			expRow(nil, out, out, nil, nil)
			for i, v := range out {
				sum[i] += float64(v)
			}
		}
		for i := range side {
			sum[i] = 1 / sum[i]
		}
		for j := range n {
			from := at + j*inner
			for i, v := range y[from : from+side] {
				y[from+i] = T(float64(v) * sum[i])
			}
		}
	})
}

func greatest[T float32 | float64](x []T, at, n, inner, side int) (top [64]T) {
	copy(top[:], x[at:at+side])
	for j := 1; j < n; j++ {
		for i, v := range x[at+j*inner : at+j*inner+side] {
			top[i] = max(top[i], v)
		}
	}
	return top
}

// softmaxBackward: y, dy; F: n, inner.
func softmaxBackward[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	y, dy, dx := driver.Of[T](&a.In[0]), driver.Of[T](&a.In[1]), driver.Of[T](&a.Out[0])
	lanes(a, a.Out[0].Len(), n, inner, func(at, _, side int) {
		if inner == 1 {
			softmaxBackRow(y[at:at+n], dy[at:at+n], dx[at:at+n])
			return
		}
		var dot [64]float64
		for j := range n {
			from := at + j*inner
			d := dy[from : from+side]
			for i, v := range y[from : from+side] {
				dot[i] += float64(v) * float64(d[i])
			}
		}
		for j := range n {
			from := at + j*inner
			d, out := dy[from:from+side], dx[from:from+side]
			for i, v := range y[from : from+side] {
				out[i] = T(float64(v) * (float64(d[i]) - dot[i]))
			}
		}
	})
}

func softmaxBackRow[T float32 | float64](y, dy, dx []T) {
	dy, dx = dy[:len(y)], dx[:len(y)]
	if d := f32(dx); d != nil {
		kern.SoftmaxBackRow(d, f32(y), f32(dy), float32(kern.DotRow(f32(y), f32(dy))))
		return
	}
	var dot float64
	for i, v := range y {
		dot += float64(v) * float64(dy[i])
	}
	for i, v := range y {
		dx[i] = T(float64(v) * (float64(dy[i]) - dot))
	}
}

// logSoftmax: F: n, inner.
func logSoftmax[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	lanes(a, a.Out[0].Len(), n, inner, func(at, _, side int) {
		if inner == 1 {
			logSoftmaxRow(y[at:at+n], x[at:at+n])
			return
		}
		top, sum := greatest(x, at, n, inner, side), [64]float64{}
		for j := range n {
			from := at + j*inner
			out := y[from : from+side]
			for i, v := range x[from : from+side] {
				out[i] = v - top[i]
			}
			expRow(nil, out, out, nil, nil)
			for i, v := range out {
				sum[i] += float64(v)
			}
		}
		for i := range side {
			sum[i] = float64(top[i]) + math.Log(sum[i])
		}
		for j := range n {
			from := at + j*inner
			out := y[from : from+side]
			for i, v := range x[from : from+side] {
				out[i] = T(float64(v) - sum[i])
			}
		}
	})
}

func softmaxRow[T float32 | float64](y, x []T) {
	if y := f32(y); y != nil {
		sum := kern.ExpSumRow(y, f32(x), kern.MaxRow(f32(x)))
		kern.ScaleRow(y, y, float32(1/sum))
		return
	}
	top := greatestOf(x)
	for i, v := range x {
		y[i] = v - top
	}
	expRow(nil, y, y, nil, nil)
	scaled(y, y, T(1/total(y)))
}

func logSoftmaxRow[T float32 | float64](y, x []T) {
	top := greatestOf(x)
	norm := top + T(math.Log(sumExp(x, top)))
	if y := f32(y); y != nil {
		kern.NormRow(y, f32(x), float32(norm), 1, 0)
		return
	}
	for i, v := range x {
		y[i] = v - norm
	}
}

// logSoftmaxBackward: y, dy; F: n, inner.
func logSoftmaxBackward[T float32 | float64](a *driver.Args) {
	n, inner := int(a.F[0]), int(a.F[1])
	y, dy, dx := driver.Of[T](&a.In[0]), driver.Of[T](&a.In[1]), driver.Of[T](&a.Out[0])
	lanes(a, a.Out[0].Len(), n, inner, func(at, _, side int) {
		if inner == 1 {
			logSoftmaxBackRow(y[at:at+n], dy[at:at+n], dx[at:at+n])
			return
		}
		var sum [64]float64
		for j := range n {
			from := at + j*inner
			for i, d := range dy[from : from+side] {
				sum[i] += float64(d)
			}
		}
		for j := range n {
			from := at + j*inner
			d, out := dy[from:from+side], dx[from:from+side]
			expRow(nil, out, y[from:from+side], nil, nil)
			for i, e := range out {
				out[i] = T(float64(d[i]) - float64(e)*sum[i])
			}
		}
	})
}

func logSoftmaxBackRow[T float32 | float64](y, dy, dx []T) {
	dy, dx = dy[:len(y)], dx[:len(y)]
	sum := total(dy)
	if d := f32(dx); d != nil {
		kern.ExpScaledRow(d, f32(y), 0, float32(sum))
		kern.SubRow(d, f32(dy), d)
		return
	}
	expRow(nil, dx, y, nil, nil)
	for i, e := range dx {
		dx[i] = T(float64(dy[i]) - float64(e)*sum)
	}
}
