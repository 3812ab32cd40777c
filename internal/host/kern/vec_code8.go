package kern

import (
	"math"
	"unsafe"
)

// Block8 is how many elements of an array in 8 bits share a scale, the greatest size among them.
const Block8 = 256

// Code8 is a dynamic tree code of 8 bits (Dettmers, 2016, "8-Bit Approximations for Parallelism in Deep Learning"): n
// leading zeros stand for a factor of 10⁻ⁿ, a one ends them, and what bits are left cut [0.1, 1] into equal parts, whose
// middles are the values. So there are more of them near 0, down to less than 10⁻⁶. 0 and 1 are values too.
//
// Code s ≤ 128 of a signed code is size s, and another one −size 256−s: zeroed memory is zero. There is no −1, and the
// largest negative size is 0.993.
type Code8 struct {
	signed bool
	values [256]float32
	code8Tables
}

// code8Tables are what vectors compute with, an entry for each power of ten, from 10⁻⁶, and 8 of them twice.
//
// Decoding: u = 2s+1 of a size's number s (s+1 of an unsigned one's) is at least the power of two with which the parts of
// its power of ten begin, and so their number n tells which power that is. Entry (log2 n + 7) mod 8: the value is a step,
// in two parts for the sake of its last bit, times the integer u·factor + offset.
//
// Encoding: entry k's numbers, which are below its end, become x·slope + shift, but no more than last. The last entry is
// for 1, and 0 belongs to the first.
type code8Tables struct {
	offset, step, rest, end, slope, shift [16]float32
	last                                  [16]int32
	factor, least                         float32 // least: what is less is coded as if it were that
}

// Number x is in entry (bits of x - firstBits)·bitsToTen, or in the next: a power of ten is that many times 2.
const (
	firstBits = 13620   // upper half of the bits
	bitsToTen = 154     // of 2¹⁶
	sign      = 1 << 31 // bit
	normal    = 1 << 23 // bits of the smallest number that has an inverse
)

// Signed8 has a sign and up to 6 linear bits, and Unsigned8 up to 7 of those.
var Signed8, Unsigned8 = newCode8(true), newCode8(false)

func newCode8(signed bool) *Code8 {
	c := &Code8{signed: signed}
	sizes := []float32{0}
	both := func(t *[16]float32, i int, v float64) {
		t[i%8], t[i%8+8] = float32(v), float32(v)
	}
	first := 1 // part of a sign
	if c.factor = 9; !signed {
		first, c.factor = 2, 18
	}
	for k := range 7 {
		n, ten := first<<k, math.Pow10(6-k)
		begin := len(sizes)
		for i := range n {
			sizes = append(sizes, float32((0.1+0.9*(float64(i)+0.5)/float64(n))/ten))
		}
		step := 1 / (20 * ten * float64(n)) // of which a value is 2n + 9 + 18i
		both(&c.step, k, step)
		both(&c.rest, k, step-float64(float32(step)))
		if both(&c.offset, k, float64(-16*n)); !signed {
			both(&c.offset, k, float64(9-16*n))
		}
		slope := float64(n) * ten / 0.9
		both(&c.slope, k, slope)
		both(&c.shift, k, float64(begin)-0.1/ten*slope)
		c.last[k], c.last[k+8] = int32(len(sizes)-1), int32(len(sizes)-1)
	}
	one := len(sizes)
	sizes = append(sizes, 1)
	both(&c.offset, 7, -float64(c.factor)) // size 0, u = 1, and the last
	step := 1 / float64(c.factor) / float64(one)
	if signed {
		step /= 2
	}
	both(&c.step, 7, step)
	both(&c.rest, 7, step-float64(float32(step)))
	both(&c.slope, 7, 0)
	both(&c.shift, 7, float64(one))
	c.last[7], c.last[15] = int32(one), int32(one)
	for k := range 7 {
		s := c.last[k]
		both(&c.end, k, float64((sizes[s]+sizes[s+1])/2))
	}
	both(&c.end, 7, math.Inf(1))
	// Below half of the first size is 0.
	half := float64(sizes[1]) / 2
	slope := 1 / half
	if !signed {
		slope = 2 / float64(sizes[2])
	}
	both(&c.slope, 0, slope)
	both(&c.shift, 0, 1-half*slope)
	if signed {
		c.least = -math.Nextafter32(c.end[6], 0)
	}
	copy(c.values[:], sizes)
	for i := len(sizes); i < 256; i++ {
		c.values[i] = -sizes[256-i]
	}
	return c
}

// Read decodes src, whose blocks have such scales.
func (c *Code8) Read(dst []float32, src []uint8, scales []float32) {
	src, scales = src[:len(dst)], scales[:(len(dst)+Block8-1)/Block8]
	if n := len(dst) / Block8; level >= avx2 && n > 0 {
		decode := decodeUnsigned8
		if c.signed {
			decode = decodeSigned8
		}
		decode(n, &dst[0], &src[0], &scales[0], c.tables())
		dst, src, scales = dst[n*Block8:], src[n*Block8:], scales[n:]
	}
	for b, scale := range scales {
		lo, hi := b*Block8, min((b+1)*Block8, len(dst))
		for i, s := range src[lo:hi] {
			dst[lo+i] = c.values[s] * scale
		}
	}
}

// Write codes src as the nearest values, and gives its blocks scales. Of numbers of 0 and more, which Unsigned8 is for,
// none but 0 becomes 0. A block with a NaN has that scale, and one below the normal numbers 0.
func (c *Code8) Write(dst []uint8, scales []float32, src []float32) {
	src, scales = src[:len(dst)], scales[:(len(dst)+Block8-1)/Block8]
	if n := len(dst) / Block8; level >= avx2 && n > 0 {
		encode := encodeUnsigned8
		if c.signed {
			encode = encodeSigned8
		}
		encode(n, &dst[0], &src[0], &scales[0], c.tables())
		dst, src, scales = dst[n*Block8:], src[n*Block8:], scales[n:]
	}
	for b := range scales {
		lo, hi := b*Block8, min((b+1)*Block8, len(dst))
		var by float32
		scales[b], by = scaleOf(src[lo:hi])
		for i, x := range src[lo:hi] {
			s := c.nearest(x * by)
			if !c.signed {
				s = max(s, int32(min(math.Float32bits(x), 1)))
			}
			dst[lo+i] = uint8(s)
		}
	}
}

func (c *Code8) tables() *float32 { return (*float32)(unsafe.Pointer(&c.code8Tables)) }

// nearest is the code of the nearest value to x of -1 to 1, up to rounding where two are as near.
func (c *Code8) nearest(x float32) int32 {
	if !(x > c.least) {
		x = c.least
	}
	bits := math.Float32bits(x)
	size := math.Float32frombits(bits &^ sign)
	k := (max(bits&^sign>>16, firstBits) - firstBits) * bitsToTen >> 16
	if c.end[k] <= size {
		k++
	}
	s := min(int32(float32(size*c.slope[k])+c.shift[k]), c.last[k])
	if bits&sign != 0 {
		s = -s
	}
	return s
}

// scaleOf is the greatest size in v, NaN if there is one, and its inverse. Below the normal numbers, which have none, both
// are 0.
func scaleOf(v []float32) (scale, inverse float32) {
	var top uint32
	for _, x := range v {
		top = max(top, math.Float32bits(x)&^sign) // as integers sizes have their order, and NaN is on top
	}
	if top < normal {
		return 0, 0
	}
	scale = math.Float32frombits(top)
	return scale, 1 / scale
}
