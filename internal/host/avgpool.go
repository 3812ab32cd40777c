package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	register("average pool", run(averagePool[float32]), run(averagePool[float64]))
	register("average pool backward", run(averagePoolBackward[float32]), run(averagePoolBackward[float64]))
}

// span is a window's elements in one dimension, and how many it counts.
type span struct{ from, to, count int }

// spans are a dimension's windows: out of them over n elements. F: kernel, stride,
// padding, 1 to count it; none for adaptive windows.
func spans(f []float64, n, out int) []span {
	s := make([]span, out)
	for i := range s {
		if len(f) == 0 {
			from, to := i*n/out, ((i+1)*n+out-1)/out
			s[i] = span{from, to, to - from}
			continue
		}
		kernel, stride, padding := int(f[0]), int(f[1]), int(f[2])
		from, to, _ := window(i, kernel, stride, padding, n)
		s[i] = span{from, to, to - from}
		if at := i*stride - padding; f[3] != 0 {
			s[i].count = min(at+kernel, n+padding) - at
		}
	}
	return s
}

func averagePool[T float32 | float64](a *driver.Args) {
	n, h, w := images(a.In[0].Shape)
	_, oh, ow := images(a.Out[0].Shape)
	x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	rows, cols := spans(a.F, h, oh), spans(a.F, w, ow)
	par.Range(a.Threads, n, channelGrain(h*w), func(lo, hi int) {
		sums := make([]float64, w) // of a window's columns
		for p := lo; p < hi; p++ {
			image := x[p*h*w:][:h*w]
			for i, r := range rows {
				out := y[(p*oh+i)*ow:][:ow]
				if ow == 1 && cols[0].to-cols[0].from == w {
					out[0] = T(total(image[r.from*w:r.to*w]) / float64(r.count*cols[0].count))
					continue
				}
				clear(sums)
				sumColumns(sums, image[r.from*w:], w, r.to-r.from)
				for j, c := range cols {
					var sum float64
					for _, v := range sums[c.from:c.to] {
						sum += v
					}
					out[j] = T(sum / float64(r.count*c.count))
				}
			}
		}
	})
}

// sumColumns adds n rows to sums, w elements apart.
func sumColumns[T float32 | float64](sums []float64, x []T, w, n int) {
	if x := f32(x); x != nil {
		kern.SumColumns(sums, x, w, n)
		return
	}
	for i := range n {
		for j, v := range x[i*w:][:len(sums)] {
			sums[j] += float64(v)
		}
	}
}

// total is the sum of v.
func total[T float32 | float64](v []T) (sum float64) {
	if f := f32(v); f != nil {
		return kern.SumRow(f)
	}
	for _, v := range v {
		sum += float64(v)
	}
	return sum
}

// averagePoolBackward: dy; writes dx. F as forward.
func averagePoolBackward[T float32 | float64](a *driver.Args) {
	n, h, w := images(a.Out[0].Shape)
	_, oh, ow := images(a.In[0].Shape)
	dy, dx := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	rows, cols := spans(a.F, h, oh), spans(a.F, w, ow)
	par.Range(a.Threads, n, channelGrain(h*w), func(lo, hi int) {
		line := make([]T, w) // what a row of windows adds to each of its rows
		for p := lo; p < hi; p++ {
			image := dx[p*h*w:][:h*w]
			clear(image)
			for i, r := range rows {
				clear(line)
				g := dy[(p*oh+i)*ow:][:ow]
				for j, c := range cols {
					share := g[j] / T(r.count*c.count)
					part := line[c.from:c.to]
					for k := range part {
						part[k] += share
					}
				}
				for row := r.from; row < r.to; row++ {
					addTo(image[row*w:][:w], line)
				}
			}
		}
	})
}

func addTo[T float32 | float64](dst, x []T) {
	if d := f32(dst); d != nil {
		kern.AddRow(d, d, f32(x))
		return
	}
	for i, v := range x {
		dst[i] += v
	}
}
