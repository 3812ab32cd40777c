package host

import (
	"math"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for _, t := range []driver.DType{driver.Float32, driver.BFloat16, driver.Float16} {
		driver.Register("adam 8bit", t, backend, driver.Kernel{Run: adam8bit})
	}
}

// block is how many elements of a moment share a scale.
const block = 256

// adam8bit is adam over moments in 8 bits (Dettmers et al., 2022, "8-bit Optimizers via
// Block-wise Quantization"): a block is read, stepped in float32, and rounded again under
// a new scale, its greatest size. F is adam's; states: mean, its scales, square, its
// scales.
func adam8bit(a *driver.Args) {
	gradient, weights := inStep[float32](a, 0), inStep[float32](a, 1)
	write := outStep[float32](a, 1)
	mean, meanScale := driver.Of[uint8](&a.Out[1]), driver.Of[float32](&a.Out[2])
	square, squareScale := driver.Of[uint8](&a.Out[3]), driver.Of[float32](&a.Out[4])
	par.Range(a.Threads, a.In[0].Len(), grain, func(lo, hi int) { // grain is a multiple of block
		buf := blocks.Get().(*[4][block]float32)
		defer blocks.Put(buf)
		for ; lo < hi; lo += block {
			end, b := min(lo+block, hi), lo/block
			m, v := buf[0][:end-lo], buf[1][:end-lo]
			signedCode.read(m, mean[lo:end], meanScale[b])
			unsignedCode.read(v, square[lo:end], squareScale[b])
			g, w := gradient(buf[2][:], lo, end), weights(buf[3][:], lo, end)
			adam(a.F, w, g, &states[float32]{m, v})
			if write != nil {
				write(w, lo)
			}
			meanScale[b] = signedCode.write(mean[lo:end], m)
			squareScale[b] = unsignedCode.writeSquares(square[lo:end], v)
		}
	})
}

var blocks = sync.Pool{New: func() any { return new([4][block]float32) }}

// code8 is a dynamic tree code of 8 bits (Dettmers, 2016, "8-Bit Approximations for
// Parallelism in Deep Learning"): n leading zeros stand for a factor of 10⁻ⁿ, a one ends
// them, and what bits are left cut [0.1, 1] into equal parts, whose middles are the
// values. So there are more of them near 0, down to less than 10⁻⁶. 0 and 1 are values too.
type code8 struct {
	values [256]float32
	// sizes are the values that are not negative, in order. Above[i] is halfway between
	// sizes i and i+1.
	sizes, above []float32
	// start is the first size that a number may be near to, by the number's first bits:
	// there is one more at most.
	start []uint8
}

// The table start begins at 2⁻²⁴, which is nearest to 0 still, and has 128 entries for each
// power of two.
const (
	lowest = 103 << 23
	first  = 23 - 7
)

var signedCode, unsignedCode = newCode8(6), newCode8(7)

// newCode8 has up to so many bits for the linear part: 6 beside a sign, and 7 without. A
// signed code c is sizes[c] for c to 128, and for others −sizes[256−c]: zeroed memory is
// zero. There is no −1, and the largest negative size is 0.993.
func newCode8(linear int) *code8 {
	c := &code8{sizes: []float32{0}}
	for zeros := 6; zeros >= 0; zeros-- {
		n := 1 << (linear - zeros)
		for i := range n {
			c.sizes = append(c.sizes, float32(math.Pow10(-zeros)*(0.1+0.9*(float64(i)+0.5)/float64(n))))
		}
	}
	c.sizes = append(c.sizes, 1)
	for i, x := range c.sizes[1:] {
		c.above = append(c.above, (c.sizes[i]+x)/2)
	}
	c.above = append(c.above, float32(math.Inf(1)))
	size := 0
	for bits := uint32(lowest); bits <= math.Float32bits(1); bits += 1 << first {
		for math.Float32frombits(bits) > c.above[size] {
			size++
		}
		c.start = append(c.start, uint8(size))
	}
	copy(c.values[:], c.sizes)
	for i := len(c.sizes); i < 256; i++ {
		c.values[i] = -c.sizes[256-i]
	}
	return c
}

func (c *code8) read(dst []float32, src []uint8, scale float32) {
	src = src[:len(dst)]
	for i, s := range src {
		dst[i] = c.values[s] * scale
	}
}

// nearest is the number of the nearest size to x in [0, 1], of two equally near the
// smaller. Anything else gives some size.
func (c *code8) nearest(x float32) uint8 {
	i := max(math.Float32bits(x), lowest) - lowest
	s := c.start[min(int(i>>first), len(c.start)-1)]
	if x > c.above[s] {
		s++
	}
	return s
}

// write codes numbers of either sign, and returns their scale: the greatest size.
func (c *code8) write(dst []uint8, src []float32) float32 {
	scale, by := scaleOf(src)
	src = src[:len(dst)]
	for i, x := range src {
		s := c.nearest(float32(math.Abs(float64(x * by))))
		if x < 0 {
			s = -min(s, 127)
		}
		dst[i] = s
	}
	return scale
}

// writeSquares codes numbers of 0 and more, and returns their scale. None but 0 becomes 0:
// a mean over the root of nothing would be a giant step.
func (c *code8) writeSquares(dst []uint8, src []float32) float32 {
	scale, by := scaleOf(src)
	src = src[:len(dst)]
	for i, x := range src {
		s := c.nearest(x * by)
		if s == 0 && x > 0 {
			s = 1
		}
		dst[i] = s
	}
	return scale
}

// scaleOf is the greatest size in v, NaN if there is one, and its inverse. Below the
// normal numbers, which have none, both are 0.
func scaleOf(v []float32) (scale, inverse float32) {
	var top uint32
	for _, x := range v {
		top = max(top, math.Float32bits(x)&^(1<<31)) // as integers sizes have their order, and NaN is on top
	}
	if top < 1<<23 {
		return 0, 0
	}
	scale = math.Float32frombits(top)
	return scale, 1 / scale
}
