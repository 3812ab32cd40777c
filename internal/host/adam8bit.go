package host

import (
	"math"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for _, t := range []driver.DType{driver.Float32, driver.BFloat16, driver.Float16} {
		driver.Register("adam 8bit", t, backend, driver.Kernel{Run: adam8bit, Scaled: true})
	}
}

// block is how many elements of a moment share a scale.
const block = 256

// adam8bit is adam over moments in 8 bits (Dettmers et al., 2022, "8-bit Optimizers via
// Block-wise Quantization"): a block is read, stepped in float32, and rounded again under
// a new scale, its greatest size. F is adam's; states: mean, its scales, square, its
// scales.
func adam8bit(a *driver.Args) {
	gradient, weights := newStepOperand[float32](a, 0), newStepOperand[float32](a, 1)
	c := newNumbers[float32](adamNumbers(a.F))
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
			g, w := gradient.read(buf[2][:], lo, end), weights.read(buf[3][:], lo, end)
			if !kern.Adam.Run(w, g, m, v, nil, c[:]) {
				adam(&c, w, g, &states[float32]{m, v})
			}
			weights.write(w, lo)
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
	sizes  []float32 // the values that are not negative, in order
	// Numbers of 0 and more are compared by their bits, which have the same order, so that
	// nothing jumps: above[i] is halfway between sizes i and i+1, and start the first size
	// that a number may be near to, by its first bits; there is one more at most.
	above [256]uint32
	start [(one-lowest)>>first + 1]uint8
}

// The table start begins at 2⁻²⁴, which is nearest to 0 still, and has 128 entries for each
// power of two.
const (
	lowest = 103 << 23
	one    = 127 << 23
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
	for i := range c.above {
		c.above[i] = math.MaxInt32
	}
	for i, x := range c.sizes[1:] {
		c.above[i] = math.Float32bits((c.sizes[i] + x) / 2)
	}
	size := uint8(0)
	for i := range c.start {
		for lowest+uint32(i)<<first > c.above[size] {
			size++
		}
		c.start[i] = size
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

// nearest is the number of the nearest size to one in [0, 1] with such bits, of two equally
// near the smaller. Anything else gives something.
func (c *code8) nearest(bits uint32) uint8 {
	s := c.start[min((max(bits, lowest)-lowest)>>first, (one-lowest)>>first)]
	return s + uint8((c.above[s]-bits)>>31)
}

// write codes numbers of either sign, and returns their scale: the greatest size.
func (c *code8) write(dst []uint8, src []float32) float32 {
	scale, by := scaleOf(src)
	src = src[:len(dst)]
	for i, x := range src {
		bits := math.Float32bits(x * by)
		s, sign := c.nearest(bits&^(1<<31)), uint8(bits>>31)
		s -= s >> 7 & sign // there is no −1
		dst[i] = s ^ -sign + sign
	}
	return scale
}

// writeSquares codes numbers of 0 and more, and returns their scale. None but 0 becomes 0:
// a mean over the root of nothing would be a giant step.
func (c *code8) writeSquares(dst []uint8, src []float32) float32 {
	scale, by := scaleOf(src)
	src = src[:len(dst)]
	for i, x := range src {
		s := c.nearest(math.Float32bits(x * by))
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
