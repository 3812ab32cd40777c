package host

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	native("mean variance", run(meanVariance[float32]), run(meanVariance[float64]))
	native("batch norm", run(batchNorm[float32]), run(batchNorm[float64]))
	native("batch norm backward", run(batchNormBackward[float32]), run(batchNormBackward[float64]))
	driver.Register("count", driver.Int64, backend, run(countUp))
}

// side is how many columns of a matrix one thread takes: of each row, whole cache lines.
const side = 64

// channelGrain is how many channels of n elements one thread takes at a time.
func channelGrain(n int) int { return max(1, grain/max(1, n)) }

// meanVariance of each channel of x [n c …], biased. Sums are of differences from the
// channel's first element, so that little is cancelled.
func meanVariance[T float32 | float64](a *driver.Args) {
	n, c, inner := channels(a.In[0].Shape)
	x := newOperand[T](&a.In[0], a.In[0].Shape)
	mean, variance := driver.Of[T](&a.Out[0]), driver.Of[T](&a.Out[1])
	m := float64(max(1, n*inner))
	result := func(ch int, first, sum, squares float64) {
		d := sum / m
		mean[ch], variance[ch] = T(first+d), T(max(0, squares/m-d*d))
	}
	if inner == 1 {
		par.Range(a.Threads, c, side, func(lo, hi int) {
			b := takeBuffers[T]()
			defer b.give()
			var first, sum, squares [side]float64
			for i := range n {
				row := x.read(b[0][:], i*c+lo, i*c+hi)
				if i == 0 {
					for j, v := range row {
						first[j] = float64(v)
					}
				}
				for j, v := range row {
					d := float64(v) - first[j]
					sum[j] += d
					squares[j] += d * d
				}
			}
			for ch := lo; ch < hi; ch++ {
				result(ch, first[ch-lo], sum[ch-lo], squares[ch-lo])
			}
		})
		return
	}
	par.Range(a.Threads, c, channelGrain(n*inner), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		for ch := lo; ch < hi; ch++ {
			var first, sum, squares float64
			if n*inner > 0 {
				first = float64(x.read(b[0][:], ch*inner, ch*inner+1)[0])
			}
			pieces(n, c, inner, ch, func(from, to int) {
				s, q := moments(x.read(b[0][:], from, to), first)
				sum += s
				squares += q
			})
			result(ch, first, sum, squares)
		}
	})
}

// pieces cuts a channel's elements into runs of at most chunk.
func pieces(n, c, inner, ch int, fn func(from, to int)) {
	for i := range n {
		from := (i*c + ch) * inner
		for end := from + inner; from < end; from += chunk {
			fn(from, min(from+chunk, end))
		}
	}
}

// moments are Σ (v − first) and Σ (v − first)².
func moments[T float32 | float64](v []T, first float64) (sum, squares float64) {
	if v := f32(v); v != nil {
		return kern.MomentsRow(v, float32(first))
	}
	var s0, s1, q0, q1 float64 // two chains of additions run side by side
	i := 0
	for ; i+1 < len(v); i += 2 {
		d, e := float64(v[i])-first, float64(v[i+1])-first
		s0 += d
		s1 += e
		q0 += d * d
		q1 += e * e
	}
	if i < len(v) {
		d := float64(v[i]) - first
		s0 += d
		q0 += d * d
	}
	return s0 + s1, q0 + q1
}

// channelNorm is what a batch norm's kernels know of each channel: x is normalized as
// (x − mean)·scale + shift.
type channelNorm[T float32 | float64] struct {
	mean, scale, shift []T
	inverse            []float64 // 1/√(variance + eps)
}

// newChannelNorm reads mean, variance, weight and bias.
func newChannelNorm[T float32 | float64](in []driver.Array, eps float64) channelNorm[T] {
	mean, variance, weight, bias := values[T](&in[0]), values[T](&in[1]), values[T](&in[2]), values[T](&in[3])
	k := channelNorm[T]{mean, make([]T, len(mean)), bias, make([]float64, len(mean))}
	for i, v := range variance {
		k.inverse[i] = 1 / math.Sqrt(float64(v)+eps)
		k.scale[i] = T(float64(weight[i]) * k.inverse[i])
	}
	return k
}

// part are the channels from one on.
func (k channelNorm[T]) part(lo, hi int) channelNorm[T] {
	return channelNorm[T]{k.mean[lo:hi], k.scale[lo:hi], k.shift[lo:hi], k.inverse[lo:hi]}
}

// plane normalizes elements of the channel ch. The conversions keep the compiler from
// fusing: backward must find the same sign as forward.
func (k *channelNorm[T]) plane(dst, x []T, ch int) {
	mean, scale, shift := k.mean[ch], k.scale[ch], k.shift[ch]
	if d := f32(dst); d != nil {
		kern.NormRow(d, f32(x), float32(mean), float32(scale), float32(shift))
		return
	}
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = T((x[i]-mean)*scale) + shift
	}
}

// row normalizes one element of each channel.
func (k *channelNorm[T]) row(dst, x []T) {
	x, mean, scale, shift := x[:len(dst)], k.mean[:len(dst)], k.scale[:len(dst)], k.shift[:len(dst)]
	for i := range dst {
		dst[i] = T((x[i]-mean[i])*scale[i]) + shift[i]
	}
}

// normed finishes normalized elements: y, if there is one, is added to them, and they are
// then kept between 0 and most, if that is not 0.
func normed[T float32 | float64](dst, y []T, most float64) {
	if y != nil {
		plus(dst, y)
	}
	switch {
	case math.IsInf(most, 1):
		reluRow(nil, dst, dst, nil, nil)
	case most != 0:
		clampRow([]float64{0, most}, dst, dst, nil, nil)
	}
}

func plus[T float32 | float64](dst, y []T) {
	if d, ok := any(dst).([]float32); ok {
		kern.AddRow(d, d, any(y).([]float32))
		return
	}
	y = y[:len(dst)]
	for i := range dst {
		dst[i] += y[i]
	}
}

// passed makes results that were kept between 0 and most the gradient dy where that passes.
func passed[T float32 | float64](y, dy []T, most float64) {
	d, ok := any(y).([]float32)
	switch {
	case ok && math.IsInf(most, 1):
		kern.ReLUBackRow(d, d, any(dy).([]float32))
	default:
		clampBackRow([]float64{0, most}, y, y, dy, nil)
	}
}

// result normalizes elements of the channel ch, and finishes them as normed.
func (k *channelNorm[T]) result(dst, x, y []T, ch int, most float64) {
	if d := f32(dst); d != nil && y == nil && most != 0 {
		kern.NormClampRow(d, f32(x), float32(k.mean[ch]), float32(k.scale[ch]), float32(k.shift[ch]), float32(most))
		return
	}
	k.plane(dst, x, ch)
	normed(dst, y, most)
}

// gradient is dy where result passes it.
func (k *channelNorm[T]) gradient(dst, x, y, dy []T, ch int, most float64) {
	if d := f32(dst); d != nil && y == nil {
		kern.NormPassRow(d, f32(x), f32(dy), float32(k.mean[ch]), float32(k.scale[ch]), float32(k.shift[ch]), float32(most))
		return
	}
	k.plane(dst, x, ch)
	normed(dst, y, 0)
	passed(dst, dy, most)
}

// added is an input that may be missing: read gives nil then.
func added[T float32 | float64](in []driver.Array, at int, shape []int) (y operand[T]) {
	if len(in) > at {
		y = newOperand[T](&in[at], shape)
	}
	return y
}

// batchNorm: x [n c …], mean, variance, weight, bias [c], and what is added, if anything.
// F: eps, and the most that max(0, ·) may be, 0 for none of it.
func batchNorm[T float32 | float64](a *driver.Args) {
	n, c, inner := channels(a.In[0].Shape)
	o := struct { // one variable, which the threads share
		x, y, add operand[T]
		k         channelNorm[T]
	}{
		newOperand[T](&a.In[0], a.In[0].Shape), newOperand[T](&a.Out[0], a.In[0].Shape), added[T](a.In, 5, a.In[0].Shape),
		newChannelNorm[T](a.In[1:5], a.F[0]),
	}
	apply := func(b *buffers[T], from, to int, result func(dst, x, y []T)) {
		dst := o.y.writable(b[1][:], from, to)
		result(dst, o.x.read(b[0][:], from, to), o.add.read(b[2][:], from, to))
		o.y.flush(dst, from, to)
	}
	if inner == 1 {
		par.Range(a.Threads, c, side, func(lo, hi int) {
			b := takeBuffers[T]()
			defer b.give()
			part := o.k.part(lo, hi)
			result := func(dst, x, y []T) {
				part.row(dst, x)
				normed(dst, y, a.F[1])
			}
			for i := range n {
				apply(b, i*c+lo, i*c+hi, result)
			}
		})
		return
	}
	par.Range(a.Threads, c, channelGrain(n*inner), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		for ch := lo; ch < hi; ch++ {
			result := func(dst, x, y []T) { o.k.result(dst, x, y, ch, a.F[1]) }
			pieces(n, c, inner, ch, func(from, to int) { apply(b, from, to, result) })
		}
	})
}

// batchNormBackward: x, mean, variance, weight, bias, dy, and what was added, if anything;
// writes dx, dweight, dbias and, if it is wanted, the gradient of what was added. F: eps, the
// most as forward, 1 where mean and variance are x's own. The first pass sums what the
// second one needs, channel by channel.
func batchNormBackward[T float32 | float64](a *driver.Args) {
	shape := a.In[0].Shape
	n, c, inner := channels(shape)
	x, dy, add := newOperand[T](&a.In[0], shape), newOperand[T](&a.In[5], shape), added[T](a.In, 6, shape)
	dx, dadd := newOperand[T](&a.Out[0], shape), added[T](a.Out, 3, shape)
	k := newChannelNorm[T](a.In[1:5], a.F[0])
	dweight, dbias := store[T](&a.Out[1]), store[T](&a.Out[2])
	most, own, m := a.F[1], a.F[2] != 0, float64(max(1, n*inner))

	// first gives x and the gradient that passes max(0, ·), and leaves that in dx too, where
	// the second pass finds it.
	first := func(b *buffers[T], from, to int, gradient func(dst, x, y, dy []T)) (xs, g []T) {
		xs, g = x.read(b[0][:], from, to), dy.read(b[1][:], from, to)
		if most == 0 {
			return xs, g
		}
		y := dx.writable(b[2][:], from, to)
		gradient(y, xs, add.read(b[3][:], from, to), g)
		dx.flush(y, from, to)
		if len(a.Out) > 3 {
			dst := dadd.writable(b[3][:], from, to)
			copy(dst, y)
			dadd.flush(dst, from, to)
		}
		return xs, y
	}
	again := dy
	if most != 0 {
		again = dx
	}
	second := func(b *buffers[T], from, to int) (xs, g, dst []T) {
		return x.read(b[0][:], from, to), again.read(b[1][:], from, to), dx.writable(b[2][:], from, to)
	}
	// finish writes a channel's sums; dx is then scale·g + p·(x − mean) + q.
	finish := func(b *buffers[T], ch int, sum, product float64) (p, q T) {
		inv, scale := k.inverse[ch], float64(k.scale[ch])
		b[2][0], b[3][0] = T(product*inv), T(sum)
		dweight(b[2][:1], ch, 1)
		dbias(b[3][:1], ch, 1)
		if own {
			p, q = T(-scale*product*inv*inv/m), T(-scale*sum/m)
		}
		return p, q
	}
	if inner == 1 {
		par.Range(a.Threads, c, side, func(lo, hi int) {
			b := takeBuffers[T]()
			defer b.give()
			part := k.part(lo, hi)
			gradient := func(dst, x, y, dy []T) {
				part.row(dst, x)
				normed(dst, y, 0)
				passed(dst, dy, most)
			}
			var sum, product [side]float64
			for i := range n {
				xs, g := first(b, i*c+lo, i*c+hi, gradient)
				for j, v := range g {
					sum[j] += float64(v)
					product[j] += float64(v) * float64(xs[j]-part.mean[j])
				}
			}
			var p, q [side]T
			for ch := lo; ch < hi; ch++ {
				p[ch-lo], q[ch-lo] = finish(b, ch, sum[ch-lo], product[ch-lo])
			}
			for i := range n {
				xs, g, dst := second(b, i*c+lo, i*c+hi)
				for j := range dst {
					dst[j] = part.scale[j]*g[j] + p[j]*(xs[j]-part.mean[j]) + q[j]
				}
				dx.flush(dst, i*c+lo, i*c+hi)
			}
		})
		return
	}
	par.Range(a.Threads, c, channelGrain(n*inner), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		for ch := lo; ch < hi; ch++ {
			mean, scale := k.mean[ch], k.scale[ch]
			gradient := func(dst, x, y, dy []T) { k.gradient(dst, x, y, dy, ch, most) }
			var sum, product float64
			pieces(n, c, inner, ch, func(from, to int) {
				xs, g := first(b, from, to, gradient)
				s, p := gradientSums(g, xs, mean)
				sum += s
				product += p
			})
			p, q := finish(b, ch, sum, product)
			pieces(n, c, inner, ch, func(from, to int) {
				xs, g, dst := second(b, from, to)
				normBackRow(dst, g, xs, scale, mean, p, q)
				dx.flush(dst, from, to)
			})
		}
	})
}

// gradientSums are Σ g and Σ g·(x − mean).
func gradientSums[T float32 | float64](g, x []T, mean T) (sum, product float64) {
	if g := f32(g); g != nil {
		return kern.ProductsRow(g, f32(x), float32(mean))
	}
	var s0, s1, p0, p1 float64
	x = x[:len(g)]
	i := 0
	for ; i+1 < len(g); i += 2 {
		a, b := float64(g[i]), float64(g[i+1])
		s0 += a
		s1 += b
		p0 += a * float64(x[i]-mean)
		p1 += b * float64(x[i+1]-mean)
	}
	if i < len(g) {
		s0 += float64(g[i])
		p0 += float64(g[i]) * float64(x[i]-mean)
	}
	return s0 + s1, p0 + p1
}

// countUp: an int64; writes the next.
func countUp(a *driver.Args) {
	driver.Of[int64](&a.Out[0])[0] = driver.Of[int64](&a.In[0])[0] + 1
}
