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

// isPointwise reports whether each pixel is on its own.
func (cv Conv) isPointwise() bool {
	return cv.KH == 1 && cv.KW == 1 && cv.SH == 1 && cv.SW == 1 && cv.PH == 0 && cv.PW == 0
}

// pointwise makes one long line of an image where each pixel is on its own.
func (cv Conv) pointwise() Conv {
	if cv.isPointwise() {
		cv.H, cv.W = 1, cv.H*cv.W
	}
	return cv
}

// direct reports whether the kernels may read images where they are: each weight meets every pixel, and a pixel's channels
// do not fight for the same lines of the cache.
func (cv Conv) direct() bool {
	one := Conv{cv.N, cv.C, cv.H, cv.W, cv.O, 1, 1, 1, 1, 0, 0, cv.DH, cv.DW, cv.G}
	return cv == one && cv.H*cv.W%cacheLines >= cacheLine
}

// fewProducts are done before a second thread has begun. Tests change it.
var fewProducts = 1 << 17

// threads is how many are worth their while.
func (cv Conv) threads(threads int) int {
	if cv.N*cv.O*cv.OH()*cv.OW()*(cv.C/cv.G)*cv.KH*cv.KW < fewProducts {
		return 1
	}
	return resolve(threads)
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
	return ConvMixedWorkspace(t, t, cv, pass, threads)
}

// ConvMixedWorkspace is ConvWorkspace for weights, or their gradient, of a type of their own.
func ConvMixedWorkspace(t, weights driver.DType, cv Conv, pass Pass, threads int) int64 {
	var a arena
	threads = cv.threads(threads)
	half := t.Half()
	switch {
	case t == driver.Float64 && pass == BackwardWeights:
		newWeightPass[float64](cv, threads, true, &a)
	case t == driver.Float64:
		newConvPass[float64](cv, pass, threads, &a)
	case t != driver.Float32 && !half:
		panic(fmt.Sprintf("kern: convolution of %v", t))
	case pass == BackwardWeights && half:
		newHalfWeights(cv, threads, weights.Half(), &a)
	case pass == BackwardWeights:
		newWeightPass[float32](cv, threads, true, &a)
	case half:
		newHalfConv(cv, pass, threads, &a)
	default:
		newConvPass[float32](cv, pass, threads, &a)
	}
	return a.size()
}

// A convPass is a forward pass or a data gradient, of x the image or the gradient of the result.
type convPass[T floating] interface {
	pack(threads int, w []T)
	run(x, bias, y []T)
}

// A weightPass is a gradient of weights, which may be summed up in several parts, and added
// to what is there.
type weightPass[T floating] interface {
	run(x, dy, dw []T, first, last, add bool)
}

func newConvPass[T floating](cv Conv, pass Pass, threads int, a *arena) convPass[T] {
	if cv.planes() && convKernelsOf[T]().planes != nil {
		return any(newPlaneConv(cv, pass, threads, a)).(convPass[T])
	}
	switch wino := convWinograd[T](cv, pass); {
	case wino && pass == Forward:
		return any(newWinoForward(cv, threads, a)).(convPass[T])
	case wino:
		return any(newWinoBackward(cv, threads, a)).(convPass[T])
	case pass == Forward:
		return newConvForward[T](cv.pointwise(), threads, a)
	}
	return newConvBackward[T](cv.pointwise(), threads, a)
}

// newWeightPass is for one run or, if once is false, for several that add up.
func newWeightPass[T floating](cv Conv, threads int, once bool, a *arena) weightPass[T] {
	if cv.planes() && convKernelsOf[T]().planes != nil {
		return any(newPlaneWeights(cv, threads, a)).(weightPass[T])
	}
	if convWinograd[T](cv, BackwardWeights) {
		return any(newWinoWeights(cv, threads, once, a)).(weightPass[T])
	}
	return newConvWeights[T](cv.pointwise(), threads, once, a)
}

// ConvForward computes y = x ∗ w + bias; bias may be nil. Where x has 16 bits, w may be
// float32, and is rounded.
func ConvForward[T, W Elem](threads int, cv Conv, x []T, w []W, bias, y []T, work []byte) {
	runConv(threads, cv, Forward, x, w, bias, y, work)
}

// ConvBackwardData computes dx, the gradient of x. w is as for ConvForward.
func ConvBackwardData[T, W Elem](threads int, cv Conv, dy []T, w []W, dx []T, work []byte) {
	runConv(threads, cv, BackwardData, dy, w, nil, dx, work)
}

func runConv[T, W Elem](threads int, cv Conv, pass Pass, x []T, w []W, bias, y []T, work []byte) {
	a := newArena(work)
	threads = cv.threads(threads)
	switch x := any(x).(type) {
	case []float32:
		c := newConvPass[float32](cv, pass, threads, a)
		c.pack(threads, same[float32](w))
		c.run(x, same[float32](bias), same[float32](y))
	case []float64:
		c := newConvPass[float64](cv, pass, threads, a)
		c.pack(threads, same[float64](w))
		c.run(x, same[float64](bias), same[float64](y))
	case []driver.B16:
		runHalfConv(newHalfConv(cv, pass, threads, a), threads, x, widener[driver.B16](w), same[driver.B16](bias), same[driver.B16](y))
	case []driver.F16:
		runHalfConv(newHalfConv(cv, pass, threads, a), threads, x, widener[driver.F16](w), same[driver.F16](bias), same[driver.F16](y))
	}
}

// ConvBackwardWeights computes dw, the gradient of w. Where x has 16 bits, dw may be float32.
func ConvBackwardWeights[T, W Elem](threads int, cv Conv, x, dy []T, dw []W, work []byte) {
	convWeightGradient(threads, cv, x, dy, dw, false, work)
}

// ConvAddWeights adds the gradient of w to dw, which has no 16 bits: with the same bits as if
// it were computed apart.
func ConvAddWeights[T, W Elem](threads int, cv Conv, x, dy []T, dw []W, work []byte) {
	convWeightGradient(threads, cv, x, dy, dw, true, work)
}

func convWeightGradient[T, W Elem](threads int, cv Conv, x, dy []T, dw []W, add bool, work []byte) {
	a := newArena(work)
	threads = cv.threads(threads)
	switch x := any(x).(type) {
	case []float32:
		newWeightPass[float32](cv, threads, true, a).run(x, same[float32](dy), same[float32](dw), true, true, add)
	case []float64:
		newWeightPass[float64](cv, threads, true, a).run(x, same[float64](dy), same[float64](dw), true, true, add)
	case []driver.B16:
		runHalfWeights(threads, cv, x, same[driver.B16](dy), dw, add, a)
	case []driver.F16:
		runHalfWeights(threads, cv, x, same[driver.F16](dy), dw, add, a)
	}
}

// convWinograd reports whether a pass goes Winograd's way.
func convWinograd[T floating](cv Conv, pass Pass) bool {
	if convKernelsOf[T]().wino == nil || cv.G == 0 || cv.N == 0 {
		return false
	}
	switch pass {
	case BackwardData:
		return cv.winograd(cv.H, cv.W, 125)
	case Forward:
		return cv.winograd(cv.OH(), cv.OW(), 125)
	}
	return cv.winograd(cv.OH(), cv.OW(), 115)
}

// A conv is what forward and data gradient share: sweeps of packed weights over padded images.
type conv[T floating] struct {
	n, groups int
	together  int     // images, so that small ones do not each need all weights anew
	from      padding // of one group of an image
	direct    bool    // images are read where they are, if there is enough after them
	distance  int     // from one image to the next, among those taken together
	to        image   // one group of an image
	sweeps    []sweep[T]
	strided   [2]int // distances of a sweep's lines and columns in the result
	slots     []convSlot[T]
	parts     int // that the channels of a result are cut in
}

// A convSlot is what a thread needs.
type convSlot[T floating] struct {
	image  []T // the padded images
	result []T // of a sweep whose pixels aren't neighbours in the result
	dense  denseSlot[T]
}

// An image has channels of lines of columns.
type image struct{ channels, lines, cols int }

func (m image) size() int { return m.lines * m.cols }
func (m image) len() int  { return m.channels * m.size() }

// How many pixels images taken together should have at least, and how many values when padded.
const fewPixels, fewValues = 128, 4096

func newConvForward[T floating](cv Conv, threads int, a *arena) *conv[T] {
	oh, ow := cv.OH(), cv.OW()
	h := forwardAxis(cv.H, oh, cv.KH, cv.SH, cv.PH, cv.DH)
	w := forwardAxis(cv.W, ow, cv.KW, cv.SW, cv.PW, cv.DW)
	c := &conv[T]{n: cv.N, groups: cv.G, to: image{cv.O / cv.G, oh, ow}, strided: [2]int{1, 1}}
	if c.n*c.groups*c.to.len() == 0 {
		return c
	}
	to, kernels := c.to, convKernelsOf[T]()
	dense := cv.isPointwise() || kernels.dense(c.to.channels, oh, ow)
	if !dense && cv.join(kernels.vector, c.to.channels, oh, ow) {
		w = w.joined(ow, cv.KW)
		to.lines, to.cols = 1, c.to.size()
	}
	c.read(cv, newPadding(cv.C/cv.G, h, w))
	s := newSweep[T](to, cv.G, cv.C/cv.G*cv.KH*cv.KW, a)
	for k := range s.off {
		s.off[k] = int32(c.from.meets(k/(cv.KH*cv.KW), k/cv.KW%cv.KH, k%cv.KW))
		s.from[k] = int32(k)
	}
	s.row, s.group = s.k, c.to.channels*s.k
	s.dense = dense && kernels.pack != nil
	c.sweeps = []sweep[T]{s}
	c.share(threads, a)
	return c
}

// newConvBackward makes one sweep for each phase of dx: the pixels at distances of a stride, which meet the same weights.
// Weight k reaches input i = o·s + k·d - p from output o. With i+p = u·s + r that is o = u - (k·d-r)/s, if s divides.
func newConvBackward[T floating](cv Conv, threads int, a *arena) *conv[T] {
	h := backwardAxis(cv.H, cv.OH(), cv.KH, cv.SH, cv.PH, cv.DH)
	w := backwardAxis(cv.W, cv.OW(), cv.KW, cv.SW, cv.PW, cv.DW)
	c := &conv[T]{n: cv.N, groups: cv.G, to: image{cv.C / cv.G, cv.H, cv.W}, strided: [2]int{cv.SH, cv.SW}}
	if c.n*c.groups*c.to.len() == 0 {
		return c
	}
	kernels := convKernelsOf[T]()
	unstrided := c.strided == [2]int{1, 1}
	join := unstrided && !cv.isPointwise() && !kernels.dense(c.to.channels, cv.H, cv.W) && cv.join(kernels.vector, c.to.channels, cv.H, cv.W)
	if join {
		w.pad = (cv.KW-1)*cv.DW - cv.PW
		w = w.joined(cv.W, cv.KW)
	}
	c.read(cv, newPadding(cv.O/cv.G, h, w))
	for rh := range cv.SH {
		for rw := range cv.SW {
			u, lines := phaseRange(cv.H, cv.SH, cv.PH, rh)
			v, cols := phaseRange(cv.W, cv.SW, cv.PW, rw)
			if lines == 0 || cols == 0 {
				continue
			}
			meet := func(k int) (h, w int, ok bool) {
				h, w = k/cv.KW*cv.DH-rh, k%cv.KW*cv.DW-rw
				return h / cv.SH, w / cv.SW, h%cv.SH == 0 && w%cv.SW == 0
			}
			taps := 0
			for k := range cv.KH * cv.KW {
				if _, _, ok := meet(k); ok {
					taps++
				}
			}
			to := image{c.to.channels, lines, cols}
			if join {
				to.lines, to.cols = 1, lines*cols
			}
			s := newSweep[T](to, cv.G, cv.O/cv.G*taps, a)
			s.at = (u*cv.SH+rh-cv.PH)*cv.W + v*cv.SW + rw - cv.PW
			s.row = cv.KH * cv.KW
			s.group = cv.O / cv.G * c.to.channels * s.row
			for i, k := 0, 0; i < len(s.off); k++ {
				o, k := k/s.row, k%s.row
				eh, ew, ok := meet(k)
				switch {
				case !ok:
					continue
				case join:
					s.off[i] = int32(c.from.at(o, 0, cv.KW-1-k%cv.KW, u-eh+h.pad, 0))
				default:
					s.off[i] = int32(c.from.at(o, 0, 0, u-eh+h.pad, v-ew+w.pad))
				}
				s.from[i] = int32(o*c.to.channels*s.row + k)
				i++
			}
			s.dense = kernels.pack != nil && s.k > 0 && (cv.isPointwise() || !join && kernels.dense(c.to.channels, lines, cols))
			c.sweeps = append(c.sweeps, s)
		}
	}
	c.share(threads, a)
	return c
}

// read says how images are read.
func (c *conv[T]) read(cv Conv, from padding) {
	c.from, c.direct = from, cv.direct() && cv.G == 1
	if cv.isPointwise() && convKernelsOf[T]().pack != nil {
		c.direct, c.from.plane = true, from.image.size()
	}
}

// inPlace reports whether images are packed where they are.
func (c *conv[T]) inPlace() bool { return c.direct && c.sweeps[0].dense }

// sweep runs one for some images.
func (c *conv[T]) sweep(s *sweep[T], slot, group, p0, p1, images, tiles int, src, dst []T, add bool) {
	if s.dense {
		s.runDense(&c.slots[slot].dense, group, p0, p1, images, c.from.w.size, c.distance, s.distance, src, dst, add)
	} else {
		s.run(group, p0, p1, src, dst, s.tiles[tiles], add)
	}
}

// share shares the work out: the images, together with what each thread needs.
func (c *conv[T]) share(threads int, a *arena) {
	pixels := c.to.size() / (c.strided[0] * c.strided[1])
	few := fewPixels
	for i := range c.sweeps {
		if c.sweeps[i].dense {
			few = denseLanes
		}
	}
	c.together = min(c.n, max(1, few/max(1, pixels), fewValues/c.from.len()))
	c.together = (c.n + (c.n+c.together-1)/c.together - 1) / ((c.n + c.together - 1) / c.together) // evenly
	tasks := (c.n + c.together - 1) / c.together * c.groups
	c.parts = 1
	if tasks < threads {
		c.parts = min((threads+tasks-1)/tasks, c.sweeps[0].panels)
	}
	c.distance = c.from.len()
	if c.direct {
		c.distance = c.groups * c.from.image.len()
	}
	most := 0
	for i := range c.sweeps {
		s := &c.sweeps[i]
		distance := c.groups * c.to.len()
		if c.strided != [2]int{1, 1} {
			distance = s.to.len()
			most = max(most, c.together*distance)
		}
		s.distance = distance
		if s.dense {
			s.makeDense(c.together, c.together == c.n, a)
		}
		if !s.once {
			s.packed = take[T](a, s.groups*s.to.channels*s.k)
		}
		if s.dense {
			continue
		}
		for j, n := range []int{c.together, c.n % c.together} {
			s.tiles[j] = s.tilesOf(n, c.from.w.size, c.distance, distance, a)
		}
	}
	c.slots = make([]convSlot[T], min(threads, tasks*c.parts))
	for i := range c.slots {
		size := c.together * c.from.len()
		if c.inPlace() {
			size = 0
		}
		s := &c.slots[i]
		s.image, s.dense, s.result = take[T](a, size), newDenseSlot(c.sweeps, c.parts, a), take[T](a, most)
	}
}

func (c *conv[T]) pack(threads int, w []T) {
	for i := range c.sweeps {
		c.sweeps[i].pack(threads, w)
	}
}

func (c *conv[T]) run(x, bias, y []T) {
	var next atomic.Int64
	par.For(len(c.slots), len(c.slots), func(slot int) {
		if !c.direct {
			clear(c.slots[slot].image) // the margins
		}
		for {
			i := int(next.Add(1)) - 1
			part, group, n := i%c.parts, i/c.parts%c.groups, i/c.parts/c.groups*c.together
			if n >= c.n {
				break
			}
			c.part(slot, n, group, part, x, bias, y)
		}
	})
}

// part computes some channels of a group of the images from n on.
func (c *conv[T]) part(slot, n, group, part int, x, bias, y []T) {
	images, tiles := min(c.together, c.n-n), 0
	if images < c.together {
		tiles = 1
	}
	src, size := x[(n*c.groups+group)*c.from.image.len():], c.to.size()
	if !c.inPlace() && (!c.direct || len(src) < images*c.distance+slack) {
		from := src
		src = c.slots[slot].image
		for i := range images {
			pad(&c.from, src[i*c.distance:], from[i*c.groups*c.from.image.len():][:c.from.image.len()])
		}
	}
	panels := c.sweeps[0].panels
	p0, p1 := part*panels/c.parts, (part+1)*panels/c.parts
	r0, r1 := p0*c.to.channels/panels, p1*c.to.channels/panels
	dst := y[(n*c.groups+group)*c.to.len():]
	unstrided := c.strided == [2]int{1, 1}
	for i := range images {
		for r := r0; r < r1; r++ {
			d := dst[i*c.groups*c.to.len()+r*size:][:size]
			switch {
			case bias != nil:
				fill(d, bias[group*c.to.channels+r])
			case !unstrided || c.sweeps[0].k == 0: // pixels that no weight reaches
				clear(d)
			}
		}
	}
	if unstrided {
		s := &c.sweeps[0]
		c.sweep(s, slot, group, p0, p1, images, tiles, src, dst, bias != nil)
		return
	}
	for j := range c.sweeps {
		s := &c.sweeps[j]
		if s.k == 0 {
			continue
		}
		c.sweep(s, slot, group, p0, p1, images, tiles, src, c.slots[slot].result, false)
		for i := range images {
			for r := r0; r < r1; r++ {
				from := c.slots[slot].result[i*s.to.len()+r*s.to.size():][:s.to.size()]
				to := dst[i*c.groups*c.to.len()+r*size+s.at:]
				scatterLines(s.to.lines, s.to.cols, c.strided[1], from, s.to.cols, to, c.strided[0]*c.to.cols)
			}
		}
	}
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}
