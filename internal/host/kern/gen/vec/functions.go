package main

import (
	"math"
	"sync"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func functions() {
	function1("expVec", exp)
	function1("expShiftVec", func(x *value) *value { return exp(sub(x, scalar(0))) })
	row2("softmaxBackVec", "y dy", func(y, dy *value) *value { return mul(sub(dy, scalar(0)), y) }) // Σ y·dy
	function1("expScaledVec", func(x *value) *value { return mul(exp(sub(x, scalar(0))), scalar(1)) })
	function1("sigmoidVec", sigmoid)
	function1("tanhVec", tanh)
	function1("siluVec", func(x *value) *value { return mul(x, sigmoid(x)) })
	function1("geluVec", gelu)
	function2("geluBackVec", "x dy", geluBack)
	function1("geluTanhVec", func(x *value) *value { // x · sigmoid(2·√(2/π)·(x + 0.044715·x³))
		return mul(x, sigmoid(mul(x, fma(c(geluScale*geluCubic), mul(x, x), c(geluScale)))))
	})
	function2("geluTanhBackVec", "x dy", geluTanhBack)
	row2("sigmoidBackVec", "y dy", func(y, dy *value) *value { return mul(mul(dy, y), sub(c(1), y)) })
	row2("tanhBackVec", "y dy", func(y, dy *value) *value { return mul(dy, sub(c(1), mul(y, y))) })
	function2("siluBackVec", "x dy", func(x, dy *value) *value {
		s := sigmoid(x)
		return mul(mul(dy, s), add(c(1), mul(x, sub(c(1), s))))
	})
	function1("logVec", log)
	row1("sqrtVec", sqrt)
	row2("sqrtBackVec", "y dy", func(y, dy *value) *value { return div(dy, add(y, y)) })
	function1("softplusVec", func(x *value) *value { // max(x, 0) + log(1+e^-|x|)
		return add(greater(c(0), x), log1p(exp(or(x, bits(0x80000000)))))
	})
	function2("softplusBackVec", "y dy", func(y, dy *value) *value { // dy·(1 - e^-y)
		return mul(dy, sub(c(0), expm1(sub(c(0), y))))
	})
	function1("eluVec", func(x *value) *value { // α
		return pick(compare(lessEqual, x, c(0)), mul(expm1(x), scalar(0)), x)
	})
	row2("eluBackVec", "y dy", func(y, dy *value) *value {
		return pick(compare(lessEqual, y, c(0)), mul(dy, add(y, scalar(0))), dy)
	})
	function1("normalVec", normal)
	reductions()
}

// exp is e^x: x = n·ln 2 + r, a polynomial in r (Cephes' expf), and 2^n. NaN stays NaN: it is the second operand of greater
// and smaller.
func exp(x *value) *value { return expWithin(greater(c(-104), smaller(c(89), x))) }

// expWithin is exp of what is between -200 and 89.
func expWithin(x *value) *value {
	n := integral(mul(x, c(math.Log2E)))
	r := fnma(n, c(-2.12194440e-4), fnma(n, c(0.693359375), x))
	p := polynomial(r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1)
	return times2(p, n)
}

// sigmoid is 1/(1+e^-x).
func sigmoid(x *value) *value {
	return div(c(1), add(exp(sub(c(0), x)), c(1)))
}

// tanh is a polynomial for |x| < 0.625 (Cephes' tanhf) and 1 - 2/(e^2|x| + 1) beyond.
func tanh(x *value) *value {
	a := abs(x)
	beyond := sub(c(1), div(c(2), add(exp(add(a, a)), c(1))))
	beyond = or(beyond, and(x, bits(0x80000000)))
	xx := mul(x, x)
	p := polynomial(xx, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
	y := pick(compare(lessEqual, c(0.625), a), beyond, fma(p, mul(x, xx), x))
	return pick(compare(unordered, x, x), x, y)
}

// tail makes Φ(-|x|), from the density's part e^(-x²/2) and a fit to the quotient of both in t = 1/(1 + 0.3|x|), which is
// good to 5e-8 of the result for |x| < 8. Beyond 15 everything is as it is there: next to 0.
func tail(x *value) (size, phi, density *value) {
	size = smaller(c(15), abs(x))
	density = expWithin(mul(mul(size, c(-0.5)), size))
	t := div(c(1), fma(size, c(0.3), c(1)))
	q := polynomial(t, 0.037409331649541855, -0.1644243597984314, 0.21879413723945618, -0.06513800472021103,
		0.13462430238723755, 0.09807689487934113, 0.12104739248752594, 0.11961032450199127)
	return size, mul(density, mul(q, t)), density
}

// gelu is x·Φ(x).
func gelu(x *value) *value {
	size, phi, _ := tail(x)
	return fnma(size, phi, greater(c(0), x))
}

// geluBack is dy · (Φ(x) + x·φ(x)).
func geluBack(x, dy *value) *value {
	_, phi, density := tail(x)
	phi = pick(negative(x), phi, sub(c(1), phi))
	return mul(dy, fma(mul(density, c(1/math.Sqrt(2*math.Pi))), x, phi))
}

const geluScale, geluCubic = 2 * 0.7978845608028654, 0.044715

// geluTanhBack is dy · (s + x·s·(1-s)·u'), for s = sigmoid(u), u = 2·√(2/π)·(x + 0.044715·x³).
func geluTanhBack(x, dy *value) *value {
	xx := smaller(c(1e6), mul(x, x)) // where 1-s has long been 0, and must not meet an infinity
	s := sigmoid(mul(x, fma(c(geluScale*geluCubic), xx, c(geluScale))))
	slope := fma(c(3*geluScale*geluCubic), xx, c(geluScale))
	y := mul(x, mul(s, sub(c(1), s)))
	return mul(dy, fma(y, slope, s))
}

// expm1 is e^x - 1 for x of 0 and less, by exp's polynomial without its 1.
func expm1(x *value) *value {
	x = greater(c(-87), x)
	n := integral(mul(x, c(math.Log2E)))
	r := fnma(n, c(-2.12194440e-4), fnma(n, c(0.693359375), x))
	p := polynomial(r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
	p = fma(mul(r, r), p, r)
	power := left(addInts(rounded(n), bits(127)), 23) // 2^n
	return fma(p, power, sub(power, c(1)))
}

// log1p is log(1+z) for z of 0 to 1: twice the area tangent of s = z/(2+z), which is s times a fit in s².
func log1p(z *value) *value {
	s := div(z, add(z, c(2)))
	return mul(s, polynomial(mul(s, s), 0.24413067922736686, 0.21393251242733236, 0.28620721980182945, 0.3999869091223353,
		0.6666667930719135, 2))
}

// logNormal is the logarithm of a normal number x, plus log 2 times more: x = m·2^e for m about 1, and a polynomial in
// m - 1 (Cephes' logf).
func logNormal(x, more *value) *value {
	i := subInts(x, bits(0x3f3504f3)) // √½
	e := apply(VPSRAD, nil, []Op{Imm(23)}, i)
	f := sub(subInts(x, left(e, 23)), c(1))
	power := float(e)
	if more != nil {
		power = add(power, more)
	}
	ff := mul(f, f)
	p := polynomial(f, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	y := fma(power, c(-2.12194440e-4), mul(mul(f, ff), p))
	y = fma(ff, c(-0.5), y)
	return fma(power, c(0.693359375), add(f, y))
}

func log(x *value) *value {
	small := compare(less, x, bits(1<<23)) // not a normal number
	y := logNormal(pick(small, mul(x, c(1<<23)), x), where(small, c(-23)))
	y = pick(compare(less, x, c(math.Inf(1))), y, x) // infinity and NaN
	y = pick(compare(equal, x, c(0)), c(math.Inf(-1)), y)
	return pick(compare(less, x, c(0)), c(math.NaN()), y)
}

// normal makes normal numbers of random ones, times a scalar, plus another: of the upper 24 bits of two neighbours as
// parts u and v of 1, √(-2·log(1-u))·cos 2πv and …·sin 2πv (Box and Muller, 1958).
func normal(numbers *value) *value {
	k := float(right(numbers, 8))
	u, v := apply(VMOVSLDUP, nil, nil, k), apply(VMOVSHDUP, nil, nil, k)
	size := sqrt(mul(logNormal(fnma(u, c(1.0/(1<<24)), c(1)), nil), c(-2)))
	turn := mul(v, c(4.0/(1<<24))) // in quarters
	q := integral(turn)
	f := sub(turn, q)
	ff := mul(f, f)
	sin := mul(f, polynomial(ff, -0.004601657886906157, 0.07968003279035929, -0.6459634602387522, math.Pi/2))
	cos := polynomial(ff, 0.0009033629980120272, -0.02085993604097336, 0.2536691825986469, -1.2337005395649538, 1)
	quarter := addInts(rounded(q), keep("phases", phases(), true))
	y := pick(negative(left(quarter, 31)), cos, sin)
	y = xor(y, and(left(quarter, 30), bits(0x80000000)))
	return fma(mul(y, size), scalar(0), scalar(1))
}

// phases are a quarter for cosines and none for sines, in turns.
var phases = sync.OnceValue(func() Mem {
	m := GLOBL("vecPhases", attr.RODATA|attr.NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(1-i%2)))
	}
	return m
})
