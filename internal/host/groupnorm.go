package host

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	native("group norm", run(groupNorm[float32]), run(groupNorm[float64]))
	native("group norm backward", run(groupNormBackward[float32]), run(groupNormBackward[float64]))
}

// groups are where the values normalized together lie in x [n c …]: rows of width
// elements, one after the other, row r being group r % count of sample r / count. An
// element at i of its row belongs to the channel (r%count)·per + i/inner. A piece of a row has
// at most most elements.
type groups struct{ rows, count, width, per, inner, most int }

func newGroups(shape []int, count int) groups {
	n, c, inner := channels(shape)
	per := c / max(1, count)
	return groups{n * count, count, per * inner, per, inner, chunk}
}

// pieces cuts the row r into runs of at most most elements that have one channel or,
// where a channel is one element, consecutive ones from ch on.
func (g *groups) pieces(r int, fn func(from, to, ch int)) {
	from, ch, run := r*g.width, r%g.count*g.per, g.inner
	if g.inner == 1 {
		run = g.width
	}
	for end := from + g.width; from < end; ch++ {
		first, c := from, ch
		for from += run; first < from; first += g.most {
			fn(first, min(first+g.most, from), c)
			if g.inner == 1 {
				c += g.most
			}
		}
	}
}

// groupNorm: x [n c …], weight, bias [c]; writes y, mean and 1/√(variance + eps) [rows].
// F: groups, eps. Layer normalization is that of one group, with one element a channel.
func groupNorm[T float32 | float64](a *driver.Args) {
	g := newGroups(a.In[0].Shape, int(a.F[0]))
	x, y := newOperand[T](&a.In[0], a.In[0].Shape), newOperand[T](&a.Out[0], a.In[0].Shape)
	weight, bias := values[T](&a.In[1]), values[T](&a.In[2])
	mean, inverse := driver.Of[T](&a.Out[1]), driver.Of[T](&a.Out[2])
	if x.direct != nil && y.direct != nil {
		g.most = max(1, g.width)
	}
	m := float64(max(1, g.width))
	par.Range(a.Threads, g.rows, channelGrain(g.width), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		for r := lo; r < hi; r++ {
			var s [1]kern.Sums
			var k [1]kern.Channel[T]
			if g.width > 0 {
				k[0].Mean = x.read(b[0][:], r*g.width, r*g.width+1)[0]
			}
			ahead := 0 // the next row comes while this one is worked on
			if x.direct != nil && r+1 < hi {
				ahead = g.width
			}
			for from, end := r*g.width, (r+1)*g.width; from < end; from += g.most {
				kern.MomentsPlanes(s[:], x.read(b[0][:], from, min(from+g.most, end)), k[:], ahead)
			}
			sum, squares := s[0].Total()
			first := float64(k[0].Mean)
			d := sum / m
			mu, inv := T(first+d), T(1/math.Sqrt(max(0, squares/m-d*d)+a.F[1]))
			mean[r], inverse[r] = mu, inv
			g.pieces(r, func(from, to, ch int) {
				xs, dst := x.read(b[0][:], from, to), y.writable(b[1][:], from, to)
				if g.inner == 1 {
					w, bias := weight[ch:][:len(dst)], bias[ch:][:len(dst)]
					layerRow(dst, xs, w, bias, mu, inv)
				} else {
					inf := T(math.Inf(1))
					kern.NormPlanes(dst, xs, []kern.Channel[T]{{Mean: mu, Scale: inv * weight[ch], Shift: bias[ch], Low: -inf, High: inf}})
				}
				y.flush(dst, from, to)
			})
		}
	})
}

func layerRow[T float32 | float64](dst, x, w, bias []T, mean, inverse T) {
	if d := f32(dst); d != nil {
		kern.LayerRow(d, f32(x), f32(w), f32(bias), float32(mean), float32(inverse))
		return
	}
	x, w, bias = x[:len(dst)], w[:len(dst)], bias[:len(dst)]
	for i := range dst {
		dst[i] = (x[i]-mean)*inverse*w[i] + bias[i]
	}
}

// groupNormBackward: x, weight, mean, inverse, dy; writes dx, dweight, dbias. F: groups.
func groupNormBackward[T float32 | float64](a *driver.Args) {
	g := newGroups(a.In[0].Shape, int(a.F[0]))
	x, dy := newOperand[T](&a.In[0], a.In[0].Shape), newOperand[T](&a.In[4], a.In[0].Shape)
	weight, mean, inverse := values[T](&a.In[1]), values[T](&a.In[2]), values[T](&a.In[3])
	dx := newOperand[T](&a.Out[0], a.In[0].Shape)
	par.Range(a.Threads, g.rows, channelGrain(g.width), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		for r := lo; r < hi; r++ {
			rowGradient(&g, r, &x, &dy, &dx, weight, mean[r], inverse[r], b)
		}
	})

	// The parameters' gradients, channel by channel over the samples in order.
	n, c, inner := channels(a.In[0].Shape)
	dweight, dbias := store[T](&a.Out[1]), store[T](&a.Out[2])
	if inner == 1 {
		par.Range(a.Threads, c, side, func(lo, hi int) {
			b := takeBuffers[T]()
			defer b.give()
			var sum, product [side]float64
			for i := range n {
				xs, gs := x.read(b[0][:], i*c+lo, i*c+hi), dy.read(b[1][:], i*c+lo, i*c+hi)
				xs = xs[:len(gs)]
				if v := f32(gs); v != nil && g.count == 1 {
					kern.LayerColumns(sum[:], product[:], v, f32(xs), float32(mean[i]), float32(inverse[i]))
					continue
				}
				if g.count == 1 {
					mu, inv := mean[i], float64(inverse[i])
					for j, v := range gs {
						sum[j] += float64(v)
						product[j] += float64(v) * float64(xs[j]-mu) * inv
					}
					continue
				}
				for j, v := range gs {
					r := i*g.count + (lo+j)/g.per
					sum[j] += float64(v)
					product[j] += float64(v) * float64(xs[j]-mean[r]) * float64(inverse[r])
				}
			}
			for j := range hi - lo {
				b[2][j], b[3][j] = T(product[j]), T(sum[j])
			}
			dweight(b[2][:hi-lo], lo, 1)
			dbias(b[3][:hi-lo], lo, 1)
		})
		return
	}
	p := planar{n, c, inner, x.direct != nil && dy.direct != nil}
	par.Range(a.Threads, c, channelGrain(n*inner), func(lo, hi int) {
		b := takeBuffers[T]()
		defer b.give()
		for ch := lo; ch < hi; ch++ {
			var sum, product float64
			for i := range n {
				r := i*g.count + ch/g.per
				p.pieces(i*c+ch, i*c+ch+1, func(from, to, _, _ int) {
					s, p := gradientSums(dy.read(b[1][:], from, to), x.read(b[0][:], from, to), mean[r])
					sum += s
					product += p * float64(inverse[r])
				})
			}
			b[2][0], b[3][0] = T(product), T(sum)
			dweight(b[2][:1], ch, 1)
			dbias(b[3][:1], ch, 1)
		}
	})
}

// rowGradient is inv·(h − mean(h) − x̂·mean(h·x̂)) with h = dy·weight and x̂ = (x − mu)·inv.
func rowGradient[T float32 | float64](g *groups, r int, x, dy, dx *operand[T], weight []T, mu, inv T, b *buffers[T]) {
	// product gives h in the third buffer, and x.
	product := func(from, to, ch int) (h, xs []T) {
		h, gs := b[2][:to-from], dy.read(b[1][:], from, to)
		if g.inner == 1 {
			times(h, gs, weight[ch:])
		} else {
			scaleRow([]float64{float64(weight[ch])}, h, gs, nil, nil)
		}
		return h, x.read(b[0][:], from, to)
	}
	var sum, sumX float64
	g.pieces(r, func(from, to, ch int) {
		h, xs := product(from, to, ch)
		s, p := gradientSums(h, xs, mu)
		sum += s
		sumX += p
	})
	m, i := float64(g.width), float64(inv)
	p, q := T(-sumX*i*i*i/m), T(-sum*i/m)
	g.pieces(r, func(from, to, ch int) {
		h, xs := product(from, to, ch)
		dst := dx.writable(h, from, to)
		normBackRow(dst, h, xs, inv, mu, p, q)
		dx.flush(dst, from, to)
	})
}

// times is h = x·w.
func times[T float32 | float64](h, x, w []T) {
	if h := f32(h); h != nil {
		kern.MulRow(h, f32(x), f32(w))
		return
	}
	x, w = x[:len(h)], w[:len(h)]
	for i := range h {
		h[i] = x[i] * w[i]
	}
}

// normBackRow is scale·g + p·(x − mean) + q.
func normBackRow[T float32 | float64](dst, g, x []T, scale, mean, p, q T) {
	if d := f32(dst); d != nil {
		kern.NormBackRow(d, f32(g), f32(x), float32(scale), float32(mean), float32(p), float32(q))
		return
	}
	g, x = g[:len(dst)], x[:len(dst)]
	for i := range dst {
		dst[i] = scale*g[i] + p*(x[i]-mean) + q
	}
}
