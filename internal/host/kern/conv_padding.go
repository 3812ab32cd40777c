package kern

import "math"

// An axis is the height or width of a padded image. Phase j of it holds what is at i·stride + j·dilation%period - pad,
// for i from 0 up to size: so neighbours in the result have neighbours for what a weight meets, whatever the stride.
type axis struct{ in, size, stride, pad, dilation, period, phases int }

func forwardAxis(in, out, k, s, p, d int) axis {
	return axis{in, out + (k-1)*d/s, s, p, d, s, min(k, s/gcd(s, d))}
}

// joined makes a phase for each weight, which needs no margin: then one line follows another without a gap, and a
// vector of pixels may reach from line to line.
func (a axis) joined(out, k int) axis {
	a.size, a.period, a.phases = out, math.MaxInt, k
	return a
}

// place is where the k-th weight meets the first pixel.
func (a axis) place(k int) (phase, i int) {
	if a.period > a.stride {
		return k, 0
	}
	return k % (a.stride / gcd(a.stride, a.dilation)), k * a.dilation / a.stride
}

func (a axis) first(phase int) int { return phase*a.dilation%a.period - a.pad }

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// join reports whether lines are better joined: whether what is saved in vectors is worth the copies. A vector that is
// not full costs about an eighth more.
func (cv Conv) join(vector, channels, lines, cols int) bool {
	cost := func(lines, cols int) int {
		vectors := (cols + vector - 1) / vector
		return lines * (8*vectors + min(1, cols%vector))
	}
	saved := cost(lines, cols) - cost(1, lines*cols)
	return saved*channels*cv.KH*cv.KW > 400*(cv.KW-1)*(lines+cv.KH-1)
}

// backwardAxis has the margins that the gradient's sweeps read beyond the result.
func backwardAxis(in, out, k, s, p, d int) axis {
	before, after := 0, 0
	for r := range s {
		u, n := phaseRange(in, s, p, r)
		for i := range k {
			if e := i*d - r; n > 0 && e%s == 0 {
				before = max(before, e/s-u)
				after = max(after, u+n-e/s-out)
			}
		}
	}
	return axis{out, before + out + after, 1, before, d, 1, 1}
}

// phaseRange is the first u of those where u·s + r - p is in [0, in), and how many there are.
func phaseRange(in, s, p, r int) (u, n int) {
	u = max(0, (p-r+s-1)/s)
	return u, max(0, (in-1+p-r+s)/s-u)
}

// A padding is an image with margins of zeros, in phases.
type padding struct {
	image image
	h, w  axis
	plane int // from one channel to the next
}

// slack is how many pixels a kernel may read beyond the last one.
const slack = 2 * 16

// Planes at a distance of nearly a multiple of cacheLines values would share lines of the cache.
const cacheLines, cacheLine = 256, 16

func newPadding(channels int, h, w axis) padding {
	p := padding{image{channels, h.in, w.in}, h, w, h.phases * w.phases * h.size * w.size}
	if p.plane%cacheLines < cacheLine {
		p.plane += cacheLine // or the channels would fight for the same lines of the cache
	}
	return p
}

// len is with what a kernel reads beyond the end.
func (p *padding) len() int { return p.image.channels*p.plane + slack }

func (p *padding) at(channel, phaseH, phaseW, line, col int) int {
	return channel*p.plane + ((phaseH*p.w.phases+phaseW)*p.h.size+line)*p.w.size + col
}

// meets is where weight (kh, kw) of a channel meets the first pixel.
func (p *padding) meets(channel, kh, kw int) int {
	ph, l := p.h.place(kh)
	pw, c := p.w.place(kw)
	return p.at(channel, ph, pw, l, c)
}

// pad copies an image into the middle of dst, whose margins are zero.
func pad[T floating](p *padding, dst, src []T) {
	h, w := &p.h, &p.w
	for c := range p.image.channels {
		for i := range h.phases {
			y0, l0, l1 := h.inside(i)
			for j := range w.phases {
				x0, q0, q1 := w.inside(j)
				if l0 < l1 && q0 < q1 {
					gatherLines(l1-l0, q1-q0, w.stride, src[(c*h.in+y0)*w.in+x0:], h.stride*w.in, dst[p.at(c, i, j, l0, q0):], w.size)
				}
			}
		}
	}
}

// inside is what of a phase is not margin, and where it is from.
func (a *axis) inside(phase int) (from, lo, hi int) {
	first := a.first(phase)
	lo = min(a.size, max(0, (-first+a.stride-1)/a.stride))
	hi = min(a.size, (a.in-first+a.stride-1)/a.stride)
	return lo*a.stride + first, lo, hi
}
