// Command attend writes the assembly of attention's scores: what becomes of them, in place, each way.
package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!race")
	for _, v := range []vectors{wide, narrow} {
		v.forward()
		v.backward()
	}
	scale()
	dots()
	Generate()
}

const row = 128 // bytes of the scores of a key: those of 32 queries

// Vectors are those of a level.
type vectors struct {
	bits int
	regs []reg.VecPhysical
}

var (
	wide = vectors{512, []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
		reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15}}
	narrow = vectors{256, []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}}
)

func (v vectors) bytes() int { return v.bits / 8 }
func (v vectors) count() int { return row / v.bytes() } // that hold a row

// forward makes s = 2^(power·(s − top)) of n rows, where top is the greatest of each column. Of the columns' sums it writes
// the inverse, and scale·top + ln sum.
func (v vectors) forward() {
	TEXT(fmt.Sprintf("attendColumns%d", v.bits), NOSPLIT, "func(n int, s *float32, power, scale float32, sums, by *float32)")
	Pragma("noescape")
	n, s, at, out := reg.RCX, reg.RSI, reg.RDI, reg.RDX
	Load(Param("n"), n)
	Load(Param("s"), s)
	top, sum, power := v.regs[:v.count()], v.regs[v.count():2*v.count()], v.regs[2*v.count()]
	for _, t := range top {
		v.load(math.Inf(-1), t)
	}
	MOVQ(s, at)
	MOVQ(n, reg.RAX)
	Label("greatest")
	for j, t := range top {
		VMAXPS(Mem{Base: at, Disp: j * v.bytes()}, t, t)
	}
	ADDQ(Imm(row), at)
	DECQ(reg.RAX)
	JNE(LabelRef("greatest"))
	Load(Param("sums"), out)
	VBROADCASTSS(NewParamAddr("power", 16), power)
	for j, t := range top {
		VMOVUPS(t, Mem{Base: out, Disp: j * v.bytes()})
		VMULPS(power, t, t)
		VXORPS(sum[j].(reg.Vec).AsX(), sum[j].(reg.Vec).AsX(), sum[j].(reg.Vec).AsX())
	}
	temps := v.regs[2*v.count()+1:]
	Label("exp")
	for j := range top {
		x, m := temps[0], Mem{Base: s, Disp: j * v.bytes()}
		VMOVUPS(m, x)
		VFMSUB213PS(top[j], power, x)
		v.exp2(x, temps[1:])
		VMOVUPS(x, m)
		VADDPS(x, sum[j], sum[j])
	}
	ADDQ(Imm(row), s)
	DECQ(n)
	JNE(LabelRef("exp"))
	scale, by := power, reg.RBX
	VBROADCASTSS(NewParamAddr("scale", 20), scale)
	Load(Param("by"), by)
	for j, x := range sum {
		inverse, m := top[0], Mem{Base: out, Disp: j * v.bytes()}
		v.load(1, inverse)
		VDIVPS(x, inverse, inverse)
		VMOVUPS(inverse, Mem{Base: by, Disp: j * v.bytes()})
		v.ln(x, temps)
		VFMADD231PS(m, scale, x)
		VMOVUPS(x, m)
	}
	VZEROUPPER()
	RET()
}

// backward makes p = 2^(power·s − powers) of s, and p·(d − inner)·scale of d.
func (v vectors) backward() {
	TEXT(fmt.Sprintf("attendBackColumns%d", v.bits), NOSPLIT, "func(n int, s, d *float32, power, scale float32, powers, inner *float32)")
	Pragma("noescape")
	n, s, d, powers, inner := reg.RCX, reg.RSI, reg.RDI, reg.RDX, reg.RBX
	Load(Param("n"), n)
	Load(Param("s"), s)
	Load(Param("d"), d)
	Load(Param("powers"), powers)
	Load(Param("inner"), inner)
	power, scale, temps := v.regs[0], v.regs[1], v.regs[2:]
	VBROADCASTSS(NewParamAddr("power", 24), power)
	VBROADCASTSS(NewParamAddr("scale", 28), scale)
	Label("loop")
	for j := range v.count() {
		at := func(base reg.Register) Mem { return Mem{Base: base, Disp: j * v.bytes()} }
		x, y := temps[0], temps[1]
		VMOVUPS(at(s), x)
		VFMSUB213PS(at(powers), power, x)
		v.exp2(x, temps[2:])
		VMOVUPS(x, at(s))
		VMOVUPS(at(d), y)
		VSUBPS(at(inner), y, y)
		VMULPS(scale, y, y)
		VMULPS(x, y, y)
		VMOVUPS(y, at(d))
	}
	ADDQ(Imm(row), s)
	ADDQ(Imm(row), d)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// Numbers too small for a normal float32, which would take a hundred times as long, become 0.
const (
	floor   = -125
	notLess = U8(5) // or not a number
)

// scale multiplies each of m rows of n columns by a number of its own.
func scale() {
	TEXT("scaleRows512", NOSPLIT, "func(m, n int, x *float32, pitch int, by *float32, mask uint32)")
	Pragma("noescape")
	m, x, pitch, by := reg.RCX, reg.RSI, reg.RDX, reg.RDI
	Load(Param("m"), m)
	Load(Param("x"), x)
	Load(Param("pitch"), pitch)
	Load(Param("by"), by)
	Load(Param("mask"), reg.EAX)
	KMOVW(reg.EAX, reg.K1)
	f, n, at := reg.Z0, reg.R8, reg.R9
	Label("row")
	VBROADCASTSS(Mem{Base: by}, f)
	Load(Param("n"), n)
	MOVQ(x, at)
	each(n, func(last bool) {
		if last {
			VMULPS_Z(Mem{Base: at}, f, reg.K1, reg.Z1)
			VMOVUPS(reg.Z1, reg.K1, Mem{Base: at})
			return
		}
		VMULPS(Mem{Base: at}, f, reg.Z1)
		VMOVUPS(reg.Z1, Mem{Base: at})
		ADDQ(Imm(64), at)
	})
	ADDQ(pitch, x)
	ADDQ(Imm(4), by)
	DECQ(m)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// dots writes the products of m rows of x with those of y, of n columns.
func dots() {
	TEXT("dotRows512", NOSPLIT, "func(m, n int, x *float32, xp int, y *float32, yp int, out *float32, mask uint32)")
	Pragma("noescape")
	m, x, y, xp, yp, out := reg.RCX, reg.RSI, reg.RDI, reg.RDX, reg.RBX, reg.R10
	Load(Param("m"), m)
	Load(Param("x"), x)
	Load(Param("xp"), xp)
	Load(Param("y"), y)
	Load(Param("yp"), yp)
	Load(Param("out"), out)
	Load(Param("mask"), reg.EAX)
	KMOVW(reg.EAX, reg.K1)
	sum, v, n, at := reg.Z0, reg.Z1, reg.R8, reg.R9
	Label("row")
	VPXORD(sum, sum, sum)
	Load(Param("n"), n)
	XORQ(at, at)
	each(n, func(last bool) {
		from := func(base reg.Register) Mem { return Mem{Base: base, Index: at, Scale: 1} }
		if last {
			VMOVUPS_Z(from(x), reg.K1, v)
			VFMADD231PS(from(y), v, reg.K1, sum)
			return
		}
		VMOVUPS(from(x), v)
		VFMADD231PS(from(y), v, sum)
		ADDQ(Imm(64), at)
	})
	VEXTRACTF32X8(Imm(1), sum, reg.Y2)
	VADDPS(reg.Y2, reg.Y0, reg.Y0)
	VEXTRACTF128(Imm(1), reg.Y0, reg.X2)
	VADDPS(reg.X2, reg.X0, reg.X0)
	VMOVHLPS(reg.X0, reg.X0, reg.X2)
	VADDPS(reg.X2, reg.X0, reg.X0)
	VMOVSHDUP(reg.X0, reg.X2)
	VADDSS(reg.X2, reg.X0, reg.X0)
	VMOVSS(reg.X0, Mem{Base: out})
	ADDQ(xp, x)
	ADDQ(yp, y)
	ADDQ(Imm(4), out)
	DECQ(m)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// each runs body for whole vectors of n elements, and for what is left.
func each(n reg.GPPhysical, body func(last bool)) {
	SUBQ(Imm(16), n)
	JL(LabelRef("rest"))
	Label("vector")
	body(false)
	SUBQ(Imm(16), n)
	JGE(LabelRef("vector"))
	Label("rest")
	ADDQ(Imm(16), n)
	JE(LabelRef("done"))
	body(true)
	Label("done")
}

// exp2 makes 2^x of x, no greater than 1 but for rounding: x = n + r, a polynomial in r whose relative error is at most
// 1e-7, times 2^n.
func (v vectors) exp2(x reg.VecPhysical, temps []reg.VecPhysical) {
	n, p := temps[0], temps[1]
	polynomial := []float64{0.0013264727262164012, 0.00967151271039255, 0.05550733743741791, 0.24022242084293965, 0.6931469775985017, 1}
	if v.bits == 512 {
		VCMPPS_BCST(notLess, v.constant(floor), x, reg.K1)
		VRNDSCALEPS(Imm(0), x, n)
		VSUBPS(n, x, x)
		v.load(polynomial[0], p)
		for _, a := range polynomial[1:] {
			v.add(a, x, p)
		}
		VSCALEFPS_Z(n, p, reg.K1, x)
		return
	}
	exists := temps[2]
	VCMPPS(notLess, v.constant(floor), x, exists)
	VROUNDPS(Imm(0), x, n)
	VSUBPS(n, x, x)
	v.load(polynomial[0], p)
	for _, a := range polynomial[1:] {
		v.add(a, x, p)
	}
	VCVTPS2DQ(n, n)
	VPSLLD(Imm(23), n, n)
	VPADDD(n, p, x)
	VANDPS(exists, x, x)
}

// ln makes ln x of x, no less than 1 but for rounding: x = m·2^e with m from 3/4 to 3/2, and ln m = 2·artanh((m − 1)/(m + 1)).
// Infinity and what is no number become NaN.
func (v vectors) ln(x reg.VecPhysical, temps []reg.VecPhysical) {
	e, m, nan := temps[0], temps[1], temps[2]
	VSUBPS(x, x, nan)
	v.load(0.75, e)
	VPSUBD(e, x, e)
	VPSRAD(Imm(23), e, e)
	VPSLLD(Imm(23), e, m)
	VPSUBD(m, x, m)
	VCVTDQ2PS(e, e)
	one, s := temps[3], x
	v.load(1, one)
	VSUBPS(one, m, s)
	VADDPS(one, m, m)
	VDIVPS(m, s, s)
	square, p := one, m
	VMULPS(s, s, square)
	v.load(2.0/9, p)
	for _, a := range []float64{2.0 / 7, 2.0 / 5, 2.0 / 3, 2} {
		v.add(a, square, p)
	}
	VMULPS(p, s, s)
	v.load(math.Ln2, p)
	VFMADD231PS(p, e, s)
	VADDPS(nan, s, x)
}

// load makes all of x a constant.
func (v vectors) load(a float64, x reg.VecPhysical) { VBROADCASTSS(v.constant(a), x) }

// add makes p·x + a of p.
func (v vectors) add(a float64, x, p reg.VecPhysical) {
	if v.bits == 512 {
		VFMADD213PS_BCST(v.constant(a), x, p)
	} else {
		VFMADD213PS(v.constant(a), x, p)
	}
}

var constants = map[uint32]Mem{}

// constant is a number, as often as a vector of 256 bits has it.
func (v vectors) constant(x float64) Mem {
	b := math.Float32bits(float32(x))
	if m, ok := constants[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("attend%08x", b), attr.RODATA|attr.NOPTR)
	for i := range 8 {
		DATA(4*i, U32(b))
	}
	constants[b] = m
	return m
}
