package main

import "math"

func functions() {
	function1("expVec", exp)
	function1("expShiftVec", func(x *value) *value { return exp(sub(x, scalar(0))) })
	function1("sigmoidVec", sigmoid)
	function1("tanhVec", tanh)
	function1("siluVec", func(x *value) *value { return mul(x, sigmoid(x)) })
	function1("geluVec", gelu)
	function2("geluBackVec", "x dy", geluBack)
	function1("geluTanhVec", func(x *value) *value { // x · sigmoid(2·√(2/π)·(x + 0.044715·x³))
		return mul(x, sigmoid(mul(x, fma(c(geluScale*geluCubic), mul(x, x), c(geluScale)))))
	})
	function2("geluTanhBackVec", "x dy", geluTanhBack)
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
