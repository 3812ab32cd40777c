package kern

import (
	"fmt"
	"sync/atomic"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

//go:generate go -C gen run ./conv -out ../conv_amd64.s -stubs ../conv_stubs_amd64.go -pkg kern

// Conv is the shape of a 2-D convolution. Images x are [N, C, H, W], weights [O, C/G, KH, KW], the result
// [N, O, OH, OW]. S is a stride, P the zeros on each side, D a dilation, G the number of groups.
//
// There is no matrix of columns. One image is copied with its margins, and the kernel finds the value that each
// weight meets by a table of offsets from the pixel. Results depend neither on the number of threads nor, but for
// the weights' gradient, on N.
type Conv struct{ N, C, H, W, O, KH, KW, SH, SW, PH, PW, DH, DW, G int }

// OH is the height of the result.
func (cv Conv) OH() int { return outSize(cv.H, cv.KH, cv.SH, cv.PH, cv.DH) }

// OW is the width of the result.
func (cv Conv) OW() int { return outSize(cv.W, cv.KW, cv.SW, cv.PW, cv.DW) }

func outSize(in, k, s, p, d int) int {
	rest := in + 2*p - d*(k-1) - 1
	if rest < 0 {
		return 0
	}
	return rest/s + 1
}

// pointwise makes one long line of an image where each pixel is on its own.
func (cv Conv) pointwise() Conv {
	if cv.KH == 1 && cv.KW == 1 && cv.SH == 1 && cv.SW == 1 && cv.PH == 0 && cv.PW == 0 {
		cv.H, cv.W = 1, cv.H*cv.W
	}
	return cv
}

// A Pass is a convolution's forward, or one of its gradients.
type Pass int

const (
	Forward Pass = iota
	BackwardData
	BackwardWeights
)

// ConvWorkspace is how many bytes of work a pass needs.
func ConvWorkspace(t driver.DType, cv Conv, pass Pass, threads int) int64 {
	switch t {
	case driver.Float32:
		return convWorkspace[float32](cv, pass, threads)
	case driver.Float64:
		return convWorkspace[float64](cv, pass, threads)
	}
	panic(fmt.Sprintf("kern: convolution of %v", t))
}

func convWorkspace[T floating](cv Conv, pass Pass, threads int) int64 {
	var a arena
	switch cv = cv.pointwise(); pass {
	case Forward:
		newConvForward[T](cv, threads, &a)
	case BackwardData:
		newConvBackward[T](cv, threads, &a)
	case BackwardWeights:
		newConvWeights[T](cv, threads, &a)
	}
	return a.size()
}

// ConvForward computes y = x ∗ w + bias; bias may be nil.
func ConvForward[T floating](threads int, cv Conv, x, w, bias, y []T, work []byte) {
	cv = cv.pointwise()
	c := newConvForward[T](cv, threads, newArena(work))
	c.sweeps[0].pack(w)
	c.run(x, bias, y)
}

// ConvBackwardData computes dx, the gradient of x.
func ConvBackwardData[T floating](threads int, cv Conv, dy, w, dx []T, work []byte) {
	cv = cv.pointwise()
	c := newConvBackward[T](cv, threads, newArena(work))
	for i := range c.sweeps {
		c.sweeps[i].pack(w)
	}
	c.run(dy, nil, dx)
}

// A conv is what forward and data gradient share: sweeps of packed weights over padded images.
type conv[T floating] struct {
	n, groups int
	from      padding // of one group of an image
	to        image   // one group of an image
	sweeps    []sweep[T]
	strided   [2]int // distances of a sweep's lines and columns in the result
	images    [][]T  // for each slot
	results   [][]T  // for each slot, where a sweep's pixels aren't neighbours in the result
	parts     int    // that the channels of a result are cut in
}

// An image has channels of lines of columns.
type image struct{ channels, lines, cols int }

func (m image) len() int { return m.channels * m.lines * m.cols }

func newConvForward[T floating](cv Conv, threads int, a *arena) *conv[T] {
	oh, ow := cv.OH(), cv.OW()
	h := forwardAxis(cv.H, oh, cv.KH, cv.SH, cv.PH, cv.DH)
	w := forwardAxis(cv.W, ow, cv.KW, cv.SW, cv.PW, cv.DW)
	c := &conv[T]{n: cv.N, groups: cv.G, from: newPadding(cv.C/cv.G, h, w), to: image{cv.O / cv.G, oh, ow}, strided: [2]int{1, 1}}
	s := newSweep[T](c.to, c.to, cv.G, cv.C/cv.G*cv.KH*cv.KW, a)
	if s.tiles != nil {
		k := 0
		for i := range cv.C / cv.G {
			for y := range cv.KH {
				for x := range cv.KW {
					s.off[k] = int32(c.from.at(i, h.phase(y), w.phase(x), y*cv.DH/cv.SH, x*cv.DW/cv.SW))
					s.from[k] = int32(k)
					k++
				}
			}
		}
		s.row, s.group = k, c.to.channels*k
		s.setTiles(c.from.w.size)
	}
	c.sweeps = []sweep[T]{s}
	c.slots(threads, a)
	return c
}

// newConvBackward makes one sweep for each phase of dx: the pixels at distances of a stride, which meet the same weights.
// Weight k reaches input i = o·s + k·d - p from output o. With i+p = u·s + r that is o = u - (k·d-r)/s, if s divides.
func newConvBackward[T floating](cv Conv, threads int, a *arena) *conv[T] {
	h := backwardAxis(cv.H, cv.OH(), cv.KH, cv.SH, cv.PH, cv.DH)
	w := backwardAxis(cv.W, cv.OW(), cv.KW, cv.SW, cv.PW, cv.DW)
	c := &conv[T]{n: cv.N, groups: cv.G, from: newPadding(cv.O/cv.G, h, w), to: image{cv.C / cv.G, cv.H, cv.W}, strided: [2]int{cv.SH, cv.SW}}
	for rh := range cv.SH {
		for rw := range cv.SW {
			u, lines := phaseRange(cv.H, cv.SH, cv.PH, rh)
			v, cols := phaseRange(cv.W, cv.SW, cv.PW, rw)
			if lines == 0 || cols == 0 {
				continue
			}
			taps := 0
			for k := range cv.KH * cv.KW {
				if k/cv.KW*cv.DH%cv.SH == rh && k%cv.KW*cv.DW%cv.SW == rw {
					taps++
				}
			}
			to := c.to
			if cv.SH > 1 || cv.SW > 1 {
				to.lines, to.cols = lines, cols
			}
			s := newSweep[T](image{c.to.channels, lines, cols}, to, cv.G, cv.O/cv.G*taps, a)
			s.at = (u*cv.SH+rh-cv.PH)*cv.W + v*cv.SW + rw - cv.PW
			s.row = cv.KH * cv.KW
			s.group = cv.O / cv.G * c.to.channels * s.row
			if s.tiles != nil {
				i := 0
				for o := range cv.O / cv.G {
					for k := range cv.KH * cv.KW {
						kh, kw := k/cv.KW*cv.DH-rh, k%cv.KW*cv.DW-rw
						if kh%cv.SH == 0 && kw%cv.SW == 0 {
							s.off[i] = int32(c.from.at(o, 0, 0, u-kh/cv.SH+h.pad, v-kw/cv.SW+w.pad))
							s.from[i] = int32(o*c.to.channels*s.row + k)
							i++
						}
					}
				}
				s.setTiles(c.from.w.size)
			}
			c.sweeps = append(c.sweeps, s)
		}
	}
	c.slots(threads, a)
	return c
}

func (c *conv[T]) slots(threads int, a *arena) {
	threads = resolve(threads)
	tasks := c.n * c.groups
	if c.to.len() == 0 {
		tasks = 0
	}
	c.parts = 1
	if tasks > 0 && tasks < threads {
		c.parts = min((threads+tasks-1)/tasks, (c.to.channels+maxRows-1)/maxRows)
	}
	for range min(threads, tasks*c.parts) {
		c.images = append(c.images, take[T](a, c.from.len()))
		var r []T
		if c.strided != [2]int{1, 1} {
			most := 0
			for i := range c.sweeps {
				most = max(most, c.sweeps[i].to.len())
			}
			r = take[T](a, most)
		}
		c.results = append(c.results, r)
	}
}

func (c *conv[T]) run(x, bias, y []T) {
	var next atomic.Int64
	par.For(len(c.images), len(c.images), func(slot int) {
		for i := int(next.Add(1)) - 1; i < c.n*c.groups*c.parts; i = int(next.Add(1)) - 1 {
			c.part(slot, i/c.parts, i%c.parts, x, bias, y)
		}
	})
}

// part computes some channels of group i%groups of image i/groups.
func (c *conv[T]) part(slot, i, part int, x, bias, y []T) {
	group := i % c.groups
	src, size := c.images[slot], c.to.lines*c.to.cols
	pad(&c.from, src, x[i*c.from.image.len():][:c.from.image.len()])
	panels := (c.to.channels + maxRows - 1) / maxRows
	p0, p1 := part*panels/c.parts, (part+1)*panels/c.parts
	r0, r1 := p0*c.to.channels/panels, p1*c.to.channels/panels
	dst := y[i*c.to.len():][:c.to.len()]
	if c.results[slot] == nil {
		s := &c.sweeps[0]
		switch {
		case bias != nil:
			for r := r0; r < r1; r++ {
				fill(dst[r*size:][:size], bias[group*c.to.channels+r])
			}
		case s.k == 0:
			clear(dst[r0*size : r1*size])
		}
		s.run(group, p0, p1, src, dst, bias != nil)
		return
	}
	clear(dst[r0*size : r1*size]) // pixels that no weight reaches
	for j := range c.sweeps {
		s := &c.sweeps[j]
		if s.k == 0 {
			continue
		}
		s.run(group, p0, p1, src, c.results[slot], false)
		for r := r0; r < r1; r++ {
			for l := range s.to.lines {
				line := c.results[slot][(r*s.to.lines+l)*s.to.cols:][:s.to.cols]
				d := dst[r*size+s.at+l*c.strided[0]*c.to.cols:]
				for q, v := range line {
					d[q*c.strided[1]] = v
				}
			}
		}
	}
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}
