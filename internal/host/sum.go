package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for t, k := range map[driver.DType]func(*driver.Args){
		driver.Float32: sum[float32], driver.Float64: sum[float64], driver.BFloat16: sum[float32], driver.Float16: sum[float32],
	} {
		driver.Register("sum", t, backend, driver.Kernel{Run: k, Strided: true})
		driver.Register("square sum", t, backend, driver.Kernel{
			Group: squareSums, Run: func(a *driver.Args) { squareSums([]*driver.Args{a}) },
		})
	}
}

// sum adds up the last F[0] dimensions, in float64, and multiplies by F[1].
func sum[T float32 | float64](a *driver.Args) {
	reduce(a, func(acc []float64, x []T, distance, n, _ int) {
		if x := f32(x); x != nil {
			kern.SumColumns(acc, x, distance, n)
			return
		}
		for i := range n {
			for j, v := range x[i*distance:][:len(acc)] {
				acc[j] += float64(v)
			}
		}
	}, func(acc float64, v []T, _ int) float64 {
		if v := f32(v); v != nil {
			return acc + kern.SumRow(v)
		}
		for _, v := range v {
			acc += float64(v)
		}
		return acc
	})
}

// reduce makes a result of each set of last F[0] dimensions and multiplies it by F[1].
// beside adds n rows, distance apart, to neighbouring results, of which at is the first,
// and along elements to result number at. A single result is put together of parts of
// fixed length.
func reduce[T float32 | float64](a *driver.Args, beside func(acc []float64, x []T, distance, n, at int), along func(acc float64, v []T, at int) float64) {
	x := a.In[0]
	kept := len(x.Shape) - int(a.F[0])
	inner, innerStrides := driver.Collapse(x.Shape[kept:], x.Strides[kept:])
	outer, outerStrides := driver.Collapse(x.Shape[:kept], x.Strides[:kept])
	n, m := driver.Numel(x.Shape[:kept]), driver.Numel(x.Shape[kept:])
	direct, isDirect := typed[T](&x)
	read, write := load[T](&x), store[T](&a.Out[0])
	// lane adds elements lo to hi of the result number at, which begins at off.
	lane := func(buf []T, acc float64, off, lo, hi, at int) float64 {
		driver.Runs(inner, innerStrides, lo, hi, func(from, step, l int) {
			if isDirect && step == 1 {
				acc = along(acc, direct[off+from:][:l], at)
				return
			}
			for i := 0; i < l; i += chunk {
				start, k := off+from+i*step, min(chunk, l-i)
				read(buf[:k], start, step)
				acc = along(acc, buf[:k], at)
			}
		})
		return acc
	}
	if n == 1 {
		parts := make([]float64, (m+grain-1)/grain)
		par.Range(a.Threads, m, grain, func(lo, hi int) {
			b := takeBuffers[T]()
			defer b.give()
			parts[lo/grain] = lane(b[0][:], 0, 0, lo, hi, 0)
		})
		total := 0.0
		for _, p := range parts {
			total += p
		}
		write([]T{T(total * a.F[1])}, 0, 1)
		return
	}
	// Neighbouring results are made side by side, so that memory is read in its order.
	par.Range(a.Threads, n, max(side, grain/max(1, m)/side*side), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		var sums [side]float64
		buf, out := b[0][:], b[1][:]
		for ; lo < hi; lo += side {
			clear(sums[:])
			w := 0
			driver.Runs(outer, outerStrides, lo, min(lo+side, hi), func(off, stride, k int) {
				acc, first := sums[w:w+k], lo+w
				w += k
				if stride != 1 || k == 1 {
					for j := range acc {
						acc[j] = lane(buf, acc[j], off+j*stride, 0, m, first+j)
					}
					return
				}
				driver.Runs(inner, innerStrides, 0, m, func(at, step, l int) {
					if isDirect {
						beside(acc, direct[off+at:], step, l, first)
						return
					}
					for i := range l {
						read(buf[:k], off+at+i*step, 1)
						beside(acc, buf[:k], 0, 1, first)
					}
				})
			})
			for j := range w {
				out[j] = T(sums[j] * a.F[1])
			}
			write(out[:w], lo, 1)
		}
	})
}

// squareSums give a float64 each. Parts of fixed length are added in order.
func squareSums(as []*driver.Args) {
	sums := make([][]float64, len(as))
	for k, a := range as {
		sums[k] = make([]float64, (a.In[0].Len()+grain-1)/grain)
	}
	inParts(as, func(k, lo, hi int) {
		x := &as[k].In[0]
		if direct, ok := typed[float32](x); ok {
			sums[k][lo/grain] = kern.SquaresRow(direct[lo:hi])
			return
		}
		read := load[float64](x)
		var buf [chunk]float64
		var s float64
		for at := lo; at < hi; at += chunk {
			v := buf[:min(chunk, hi-at)]
			read(v, at, 1)
			for _, v := range v {
				s += v * v
			}
		}
		sums[k][lo/grain] = s
	})
	for k, a := range as {
		var s float64
		for _, p := range sums[k] {
			s += p
		}
		driver.Of[float64](&a.Out[0])[0] = s
	}
}
