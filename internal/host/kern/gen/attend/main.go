// Command attend writes the assembly of attention's rows: what becomes of a query's scores, in one pass each way.
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
	forward()
	backward()
	Generate()
}

const zlanes = 64 // bytes of a vector

var (
	n, x, y     = reg.RCX, reg.RSI, reg.RDI
	scale, from = reg.Z16, reg.Z17
	most, least = reg.Z20, reg.Z21 // that exp tells from more and from less
)

// forward makes x = e^(scale·x − top) of a row, where top is scale times its greatest value, and their sum. The last vector
// is under a mask.
func forward() {
	TEXT("attendRow512", NOSPLIT, "func(n int, x *float32, scale float32, mask uint32) (top, sum float32)")
	Pragma("noescape")
	Load(Param("n"), n)
	Load(Param("x"), x)
	VBROADCASTSS(NewParamAddr("scale", 16), scale)
	Load(Param("mask"), reg.EAX)
	KMOVW(reg.EAX, reg.K1)
	top, sum, v := reg.Z5, reg.Z6, reg.Z0
	VBROADCASTSS(constant(math.Inf(-1)), top)
	MOVQ(x, y)
	MOVQ(n, reg.RDX)
	each("greatest", reg.RDX, func(last bool) {
		if last {
			VMAXPS(Mem{Base: y}, top, reg.K1, top)
		} else {
			VMAXPS(Mem{Base: y}, top, top)
		}
		ADDQ(Imm(zlanes), y)
	})
	reduce(VMAXPS, top)
	VMULPS(scale, top, top)
	VBROADCASTSS(reg.X5, from)
	VPXORD(sum, sum, sum)
	VBROADCASTSS(constant(89), most)
	VBROADCASTSS(constant(-104), least)
	each("exp", n, func(last bool) {
		if last {
			VMOVUPS_Z(Mem{Base: x}, reg.K1, v)
		} else {
			VMOVUPS(Mem{Base: x}, v)
		}
		VFMSUB213PS(from, scale, v)
		exp(v)
		if last {
			VMOVUPS(v, reg.K1, Mem{Base: x})
			VADDPS(v, sum, reg.K1, sum)
		} else {
			VMOVUPS(v, Mem{Base: x})
			VADDPS(v, sum, sum)
		}
		ADDQ(Imm(zlanes), x)
	})
	reduce(VADDPS, sum)
	Store(reg.X5, ReturnIndex(0))
	Store(reg.X6, ReturnIndex(1))
	VZEROUPPER()
	RET()
}

// backward makes p = e^(scale·x − sums) of x, and p·(y − inner)·scale of y.
func backward() {
	TEXT("attendBackRow512", NOSPLIT, "func(n int, x, y *float32, scale, sums, inner float32, mask uint32)")
	Pragma("noescape")
	inner, v, w := reg.Z18, reg.Z0, reg.Z4
	Load(Param("n"), n)
	Load(Param("x"), x)
	Load(Param("y"), y)
	VBROADCASTSS(NewParamAddr("scale", 24), scale)
	VBROADCASTSS(NewParamAddr("sums", 28), from)
	VBROADCASTSS(NewParamAddr("inner", 32), inner)
	Load(Param("mask"), reg.EAX)
	KMOVW(reg.EAX, reg.K1)
	VBROADCASTSS(constant(89), most)
	VBROADCASTSS(constant(-104), least)
	each("exp", n, func(last bool) {
		if last {
			VMOVUPS_Z(Mem{Base: x}, reg.K1, v)
			VMOVUPS_Z(Mem{Base: y}, reg.K1, w)
		} else {
			VMOVUPS(Mem{Base: x}, v)
			VMOVUPS(Mem{Base: y}, w)
		}
		VFMSUB213PS(from, scale, v)
		exp(v)
		VSUBPS(inner, w, w)
		VMULPS(scale, w, w)
		VMULPS(v, w, w)
		if last {
			VMOVUPS(v, reg.K1, Mem{Base: x})
			VMOVUPS(w, reg.K1, Mem{Base: y})
		} else {
			VMOVUPS(v, Mem{Base: x})
			VMOVUPS(w, Mem{Base: y})
		}
		ADDQ(Imm(zlanes), x)
		ADDQ(Imm(zlanes), y)
	})
	VZEROUPPER()
	RET()
}

// each runs body for whole vectors of n elements, and for what is left.
func each(name string, n reg.GPPhysical, body func(last bool)) {
	SUBQ(Imm(16), n)
	JL(LabelRef(name + "rest"))
	Label(name)
	body(false)
	SUBQ(Imm(16), n)
	JGE(LabelRef(name))
	Label(name + "rest")
	ADDQ(Imm(16), n)
	JE(LabelRef(name + "done"))
	body(true)
	Label(name + "done")
}

// reduce brings all lanes together in the first.
func reduce(f func(...Op), v reg.VecPhysical) {
	t := reg.Z1
	VSHUFF32X4(Imm(0x4e), v, v, t)
	f(t, v, v)
	VSHUFF32X4(Imm(0xb1), v, v, t)
	f(t, v, v)
	VSHUFPS(Imm(0x4e), v, v, t)
	f(t, v, v)
	VSHUFPS(Imm(0xb1), v, v, t)
	f(t, v, v)
}

var constants = map[uint32]Mem{}

func constant(v float64) Mem {
	b := math.Float32bits(float32(v))
	if m, ok := constants[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("attend%08x", b), attr.RODATA|attr.NOPTR)
	DATA(0, U32(b))
	constants[b] = m
	return m
}

// exp makes e^x of x: x = n·ln 2 + r, a polynomial in r (Cephes' expf), times 2^n. NaN stays NaN: it is the second operand of
// max and min.
func exp(x reg.VecPhysical) {
	n, p := reg.Z2, reg.Z3
	VMINPS(x, most, x)
	VMAXPS(x, least, x)
	VMULPS_BCST(constant(math.Log2E), x, n)
	VRNDSCALEPS(Imm(0), n, n)
	VFNMADD231PS_BCST(constant(0.693359375), n, x)
	VFNMADD231PS_BCST(constant(-2.12194440e-4), n, x)
	VBROADCASTSS(constant(1.9875691500e-4), p)
	for _, a := range []float64{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1} {
		VFMADD213PS_BCST(constant(a), x, p)
	}
	VSCALEFPS(n, p, x)
}
