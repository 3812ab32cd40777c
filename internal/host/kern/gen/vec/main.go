// Command vec writes the assembly of the kernels of rows: element by element.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	ConstraintExpr("amd64,!race")
	arithmetic()
	functions()
	rules()
	adafactor()
	philox()
	random()
	uniform()
	code8()
	sum()
	maximum()
	columns("columnsVec32", 8)
	columns("columnsVec4", 1)
	layerColumns()
	Generate()
}

// one and two make bodies of functions of as many inputs.
func one(f func(x *value) *value) func(in []*value) []*value {
	return func(in []*value) []*value { return []*value{f(in[0])} }
}

func two(f func(x, y *value) *value) func(in []*value) []*value {
	return func(in []*value) []*value { return []*value{f(in[0], in[1])} }
}

func row1(name string, f func(x *value) *value) { row(name, "dst x", "x", "dst", one(f)) }

func row2(name, inputs string, f func(x, y *value) *value) {
	row(name, "dst "+inputs, inputs, "dst", two(f))
}

func function1(name string, f func(x *value) *value) { function(name, "dst x", "x", "dst", one(f)) }

func function2(name, inputs string, f func(x, y *value) *value) {
	function(name, "dst "+inputs, inputs, "dst", two(f))
}

func arithmetic() {
	zero := func() *value { return c(0) }
	row2("addVec", "x y", add)
	row2("mulVec", "x y", mul)
	row2("subVec", "x y", sub)
	row2("divVec", "x y", div)
	row1("scaleVec", func(x *value) *value { return mul(x, scalar(0)) })
	row2("lerpVec", "x y", func(x, y *value) *value { // weight, scale
		return add(x, mul(sub(mul(y, scalar(1)), x), scalar(0)))
	})
	row("axpyVec", "dst x", "dst x", "dst", func(in []*value) []*value {
		return []*value{add(in[0], mul(in[1], scalar(0)))}
	})
	row1("reluVec", func(x *value) *value { return greater(zero(), x) }) // a NaN stays one
	row2("reluBackVec", "y dy", func(y, dy *value) *value { return where(compare(less, zero(), y), dy) })
	row1("clampVec", func(x *value) *value { return smaller(scalar(1), greater(scalar(0), x)) })
	between := func(y, lo, hi *value) *value {
		return both(compare(less, lo, y), compare(less, y, hi))
	}
	row2("clampBackVec", "y dy", func(y, dy *value) *value { return where(between(y, scalar(0), scalar(1)), dy) })
	leaky := func(by, x *value) *value { // where x ≤ 0 it is multiplied
		return pick(compare(lessEqual, x, zero()), mul(by, scalar(0)), by)
	}
	row1("leakyVec", func(x *value) *value { return leaky(x, x) })
	row2("leakyBackVec", "y dy", func(y, dy *value) *value { return leaky(dy, y) })
	row("layerVec", "dst x w b", "x w b", "dst", func(in []*value) []*value { // mean, inverse
		return []*value{add(mul(mul(sub(in[0], scalar(0)), scalar(1)), in[1]), in[2])}
	})
}
