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

// side is how many columns of a matrix, or channels, one thread takes at a time, at most.
const side = 64

// channelGrain is how many channels of n elements one thread takes at a time.
func channelGrain(n int) int { return max(1, grain/max(1, n)) }

// planar is how the elements of an array [n c inner] are gone through: plane by plane, in the
// order of memory as far as possible. Where all operands are direct, many planes are a piece.
type planar struct {
	n, c, inner int
	direct      bool
}

// group is how many channels one thread takes at a time where it needs all of a channel.
func (p *planar) group() int { return min(side, channelGrain(p.n*p.inner)) }

// ahead is how far from its place in sample i memory is needed next: in the sample by steps
// from there, if there is one.
func (p *planar) ahead(i, by int) int {
	if next := i + by; !p.direct || next < 0 || next >= p.n {
		return 0
	}
	return by * p.c * p.inner
}

// pieces cuts the planes lo to hi, of all n·c, into runs of elements: of whole planes, the
// first one of which is of channel ch, or at most chunk elements of one.
func (p *planar) pieces(lo, hi int, fn func(from, to, ch, planes int)) {
	for lo < hi {
		ch, from, planes := lo%p.c, lo*p.inner, 1
		if most := max(1, chunk/max(1, p.inner)); p.direct || most > 1 {
			planes = min(hi-lo, p.c-ch)
			if !p.direct {
				planes = min(planes, most)
			}
			fn(from, from+planes*p.inner, ch, planes)
		} else {
			for end := from + p.inner; from < end; from += chunk {
				fn(from, min(from+chunk, end), ch, 1)
			}
		}
		lo += planes
	}
}

// meanVariance of each channel of x [n c …], biased. Sums are of differences from the
// channel's first element, so that little is cancelled.
func meanVariance[T float32 | float64](a *driver.Args) {
	n, c, inner := channels(a.In[0].Shape)
	x := newOperand[T](&a.In[0], a.In[0].Shape)
	mean, variance := driver.Of[T](&a.Out[0]), driver.Of[T](&a.Out[1])
	m := float64(max(1, n*inner))
	p := planar{n, c, inner, x.direct != nil}
	par.Range(a.Threads, c, p.group(), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		var k [side]kern.Channel[T]
		var sums [side]kern.Sums
		for ch := lo; ch < hi && n*inner > 0; ch++ {
			k[ch-lo].Mean = x.read(b[0][:], ch*inner, ch*inner+1)[0]
		}
		for i := range n {
			ahead := p.ahead(i, 1)
			p.pieces(i*c+lo, i*c+hi, func(from, to, ch, planes int) {
				kern.MomentsPlanes(sums[ch-lo:][:planes], x.read(b[0][:], from, to), k[ch-lo:][:planes], ahead)
			})
		}
		for ch := lo; ch < hi; ch++ {
			sum, squares := sums[ch-lo].Total()
			d := sum / m
			mean[ch], variance[ch] = T(float64(k[ch-lo].Mean)+d), T(max(0, squares/m-d*d))
		}
	})
}

// channelNorm is what a batch norm's kernels know of each channel.
type channelNorm[T float32 | float64] struct {
	channels []kern.Channel[T]
	inverse  []float64 // 1/√(variance + eps)
}

// newChannelNorm reads mean, variance, weight and bias. Results are kept between 0 and most,
// if that is not 0.
func newChannelNorm[T float32 | float64](in []driver.Array, eps, most float64) channelNorm[T] {
	mean, variance, weight, bias := values[T](&in[0]), values[T](&in[1]), values[T](&in[2]), values[T](&in[3])
	k := channelNorm[T]{make([]kern.Channel[T], len(mean)), make([]float64, len(mean))}
	low, high := 0.0, most
	if most == 0 {
		low, high = math.Inf(-1), math.Inf(1)
	}
	for i, v := range variance {
		k.inverse[i] = 1 / math.Sqrt(float64(v)+eps)
		k.channels[i] = kern.Channel[T]{
			Mean: mean[i], Scale: T(float64(weight[i]) * k.inverse[i]), Shift: bias[i], Low: T(low), High: T(high),
		}
	}
	return k
}

// added is an operand that may be missing: read gives nil then.
func added[T float32 | float64](in []driver.Array, at int, shape []int) (y operand[T]) {
	if len(in) > at {
		y = newOperand[T](&in[at], shape)
	}
	return y
}

// batchNorm: x [n c …], mean, variance, weight, bias [c], and what is added, if anything.
// F: eps, and the most that max(0, ·) may be, 0 for none of it.
func batchNorm[T float32 | float64](a *driver.Args) {
	shape := a.In[0].Shape
	n, c, inner := channels(shape)
	o := struct { // one variable, which the threads share
		x, y, add operand[T]
		k         []kern.Channel[T]
		planar
	}{
		x: newOperand[T](&a.In[0], shape), y: newOperand[T](&a.Out[0], shape), add: added[T](a.In, 5, shape),
		k: newChannelNorm[T](a.In[1:5], a.F[0], a.F[1]).channels,
	}
	plain := len(a.In) == 5
	o.planar = planar{n, c, inner, o.x.direct != nil && o.y.direct != nil && (plain || o.add.direct != nil)}
	length := channelGrain(inner)
	if n*c*inner >= large { // as elementwise operations
		length = (kern.Past + inner - 1) / inner
	}
	par.Range(a.Threads, n*c, length, func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		o.pieces(lo, hi, func(from, to, ch, planes int) {
			dst, x, k := o.y.writable(b[1][:], from, to), o.x.read(b[0][:], from, to), o.k[ch:][:planes]
			if plain {
				kern.NormPlanes(dst, x, k)
			} else {
				kern.NormAddPlanes(dst, x, o.add.read(b[2][:], from, to), k)
			}
			o.y.flush(dst, from, to)
		})
	})
}

// batchNormBackward: x, mean, variance, weight, bias, dy, and what was added, if anything;
// writes dx, dweight, dbias and, if it is wanted, the gradient of what was added. F: eps, the
// most as forward, 1 where mean and variance are x's own. The first pass sums what the
// second one needs, a few channels at a time: that finds them in the cache, and begins with
// the sample that the first one ended with.
func batchNormBackward[T float32 | float64](a *driver.Args) {
	shape := a.In[0].Shape
	n, c, inner := channels(shape)
	x, dy, add := newOperand[T](&a.In[0], shape), newOperand[T](&a.In[5], shape), added[T](a.In, 6, shape)
	dx, dadd := newOperand[T](&a.Out[0], shape), added[T](a.Out, 3, shape)
	clamped, sum, own, m := a.F[1] != 0, len(a.In) > 6, a.F[2] != 0, float64(max(1, n*inner))
	k := newChannelNorm[T](a.In[1:5], a.F[0], a.F[1])
	dweight, dbias := store[T](&a.Out[1]), store[T](&a.Out[2])
	p := planar{n, c, inner, x.direct != nil && dy.direct != nil && dx.direct != nil &&
		(!sum || add.direct != nil && dadd.direct != nil)}

	// finish writes a channel's sums; dx is then Scale·g + P·(x − Mean) + Q.
	finish := func(b *buffers[T], ch int, sum, product float64) {
		inv, k := k.inverse[ch], &k.channels[ch]
		b[2][0], b[3][0] = T(product*inv), T(sum)
		dweight(b[2][:1], ch, 1)
		dbias(b[3][:1], ch, 1)
		if scale := float64(k.Scale); own {
			k.P, k.Q = T(-scale*product*inv*inv/m), T(-scale*sum/m)
		}
	}
	par.Range(a.Threads, c, p.group(), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		var sums [side]kern.Sums
		for i := range n {
			ahead := p.ahead(i, 1)
			p.pieces(i*c+lo, i*c+hi, func(from, to, ch, planes int) {
				s, k, x, g := sums[ch-lo:][:planes], k.channels[ch:][:planes], x.read(b[0][:], from, to), dy.read(b[1][:], from, to)
				switch {
				case sum:
					dst := dadd.writable(b[3][:], from, to)
					kern.PassAddProductsPlanes(s, dst, g, x, add.read(b[2][:], from, to), k, ahead)
					dadd.flush(dst, from, to)
				case clamped:
					kern.PassProductsPlanes(s, g, x, k, ahead)
				default:
					kern.ProductsPlanes(s, g, x, k, ahead)
				}
			})
		}
		for ch := lo; ch < hi; ch++ {
			sum, product := sums[ch-lo].Total()
			finish(b, ch, sum, product)
		}
		for i := n - 1; i >= 0; i-- {
			ahead := p.ahead(i, -1)
			p.pieces(i*c+lo, i*c+hi, func(from, to, ch, planes int) {
				dst, x, k := dx.writable(b[2][:], from, to), x.read(b[0][:], from, to), k.channels[ch:][:planes]
				switch {
				case sum:
					kern.NormBackPlanes(dst, dadd.read(b[1][:], from, to), x, k, ahead)
				case clamped:
					kern.PassBackPlanes(dst, dy.read(b[1][:], from, to), x, k, ahead)
				default:
					kern.NormBackPlanes(dst, dy.read(b[1][:], from, to), x, k, ahead)
				}
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
