// Command vec writes the assembly of the kernels of rows: element by element.
package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var ymm = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}

// Registers: rows and what is made of them come first, then temporaries, scalars, and zero.
var (
	temps   = ymm[4:8]
	scalars = ymm[8:14]
	mask    = ymm[14]
	zero    = ymm[15]
)

func main() {
	ConstraintExpr("amd64,!race")
	row("addVec", "dst x y", "x y", "dst", 0, func() { VADDPS(ymm[2], ymm[1], ymm[0]) })
	row("mulVec", "dst x y", "x y", "dst", 0, func() { VMULPS(ymm[2], ymm[1], ymm[0]) })
	row("subVec", "dst x y", "x y", "dst", 0, func() { VSUBPS(ymm[2], ymm[1], ymm[0]) })
	row("divVec", "dst x y", "x y", "dst", 0, func() { VDIVPS(ymm[2], ymm[1], ymm[0]) })
	row("scaleVec", "dst x", "x", "dst", 1, func() { VMULPS(scalars[0], ymm[1], ymm[0]) })
	row("lerpVec", "dst x y", "x y", "dst", 2, func() { // weight, scale
		VMULPS(scalars[1], ymm[2], ymm[2])
		VSUBPS(ymm[1], ymm[2], ymm[2])
		VMULPS(scalars[0], ymm[2], ymm[2])
		VADDPS(ymm[2], ymm[1], ymm[0])
	})
	row("clampVec", "dst x", "x", "dst", 2, func() { // a NaN stays one
		VMAXPS(ymm[1], scalars[0], ymm[0])
		VMINPS(ymm[0], scalars[1], ymm[0])
	})
	row("clampBackVec", "dst y dy", "y dy", "dst", 2, func() {
		VCMPPS(Imm(1), ymm[1], scalars[0], ymm[0]) // lo < y
		VCMPPS(Imm(1), scalars[1], ymm[1], ymm[3]) // y < hi
		VANDPS(ymm[3], ymm[0], ymm[0])
		VANDPS(ymm[2], ymm[0], ymm[0])
	})
	leaky := func(by, x int) { // where x ≤ 0 it is multiplied
		VMULPS(scalars[0], ymm[by], ymm[3])
		VCMPPS(Imm(2), zero, ymm[x], temps[0])
		VBLENDVPS(temps[0], ymm[3], ymm[by], ymm[0])
	}
	row("leakyVec", "dst x", "x", "dst", 1, func() { leaky(1, 1) })
	row("leakyBackVec", "dst y dy", "y dy", "dst", 1, func() { leaky(2, 1) })
	norm := func() { // mean, scale, shift
		VSUBPS(scalars[0], ymm[1], ymm[0])
		VMULPS(scalars[1], ymm[0], ymm[0])
		VADDPS(scalars[2], ymm[0], ymm[0])
	}
	row("normVec", "dst x", "x", "dst", 3, norm)
	row("normClampVec", "dst x", "x", "dst", 4, func() { // … most
		norm()
		VMAXPS(ymm[0], zero, ymm[0])
		VMINPS(ymm[0], scalars[3], ymm[0])
	})
	row("normPassVec", "dst x dy", "x dy", "dst", 4, func() {
		norm()
		VCMPPS(Imm(1), scalars[3], ymm[0], ymm[3]) // y < most
		VCMPPS(Imm(1), ymm[0], zero, ymm[0])       // 0 < y
		VANDPS(ymm[3], ymm[0], ymm[0])
		VANDPS(ymm[2], ymm[0], ymm[0])
	})
	row("layerVec", "dst x w b", "x w b", "dst", 2, func() { // mean, inverse
		VSUBPS(scalars[0], ymm[1], ymm[0])
		VMULPS(scalars[1], ymm[0], ymm[0])
		VMULPS(ymm[2], ymm[0], ymm[0])
		VADDPS(ymm[3], ymm[0], ymm[0])
	})
	row("normBackVec", "dst grad x", "grad x", "dst", 4, func() { // scale, mean, p, q
		VMULPS(scalars[0], ymm[1], ymm[0])
		VSUBPS(scalars[1], ymm[2], ymm[2])
		VMULPS(scalars[2], ymm[2], ymm[2])
		VADDPS(ymm[2], ymm[0], ymm[0])
		VADDPS(scalars[3], ymm[0], ymm[0])
	})
	row("axpyVec", "dst x", "dst x", "dst", 1, func() {
		VMULPS(scalars[0], ymm[1], ymm[1])
		VADDPS(ymm[1], ymm[0], ymm[0])
	})
	row("reluVec", "dst x", "x", "dst", 0, func() { VMAXPS(ymm[1], zero, ymm[0]) }) // a NaN stays one
	row("reluBackVec", "dst y dy", "y dy", "dst", 0, func() {
		VCMPPS(Imm(1), ymm[1], zero, ymm[0]) // 0 < y
		VANDPS(ymm[2], ymm[0], ymm[0])
	})
	row("expVec", "dst x", "x", "dst", 0, func() { exp(ymm[1]); VMOVAPS(ymm[1], ymm[0]) })
	row("sigmoidVec", "dst x", "x", "dst", 0, func() { sigmoid(ymm[1], ymm[0]) })
	row("tanhVec", "dst x", "x", "dst", 0, tanh)
	row("expShiftVec", "dst x", "x", "dst", 1, func() {
		VSUBPS(scalars[0], ymm[1], ymm[0])
		exp(ymm[0])
	})
	row("siluVec", "dst x", "x", "dst", 0, func() {
		VMOVAPS(ymm[1], ymm[2])
		sigmoid(ymm[2], ymm[3])
		VMULPS(ymm[3], ymm[1], ymm[0])
	})
	row("geluVec", "dst x", "x", "dst", 0, func() {
		normal()
		VMULPS(ymm[1], ymm[0], ymm[0])
	})
	row("geluBackVec", "dst x dy", "x dy", "dst", 0, geluBack)
	row("geluTanhBackVec", "dst x dy", "x dy", "dst", 0, geluTanhBack)
	row("geluTanhVec", "dst x", "x", "dst", 0, func() {
		// x · sigmoid(2·√(2/π)·(x + 0.044715·x³))
		VMULPS(ymm[1], ymm[1], ymm[2])
		VMOVUPS(c(2*0.7978845608028654*0.044715), ymm[3])
		VFMADD213PS(c(2*0.7978845608028654), ymm[2], ymm[3])
		VMULPS(ymm[1], ymm[3], ymm[3])
		sigmoid(ymm[3], ymm[2])
		VMULPS(ymm[2], ymm[1], ymm[0])
	})
	rules()
	philox()
	row("dropVec", "dst x numbers", "x numbers", "dst", 2, func() { // scale, the greatest number that drops
		VPSRLD(Imm(8), ymm[2], ymm[2])
		VPCMPGTD(scalars[1], ymm[2], ymm[2])
		VMULPS(scalars[0], ymm[1], ymm[0])
		VANDPS(ymm[2], ymm[0], ymm[0])
	})
	sum()
	maximum()
	moments()
	products()
	columns("columnsVec32", 8)
	columns("columnsVec4", 1)
	layerColumns()
	Generate()
}

// rows are where row has them.
var rows = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y13}

// row writes a kernel of n elements. The rows are in registers for the body, which leaves there what is written.
// The last vector, if it is not full, is under a mask.
func row(name, all, read, written string, scalarCount int, body func()) {
	names := strings.Fields(all)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(n int, %s *float32, scalars *float32, mask *int32)", strings.Join(names, ", ")))
	Pragma("noescape")
	Doc(name + " is a kernel of rows.")
	n, i := reg.RCX, reg.RAX
	at := map[string]reg.GPPhysical{}
	for j, r := range names {
		at[r] = []reg.GPPhysical{reg.RSI, reg.RDI, reg.R8, reg.R9, reg.R10}[j]
		Load(Param(r), at[r])
	}
	Load(Param("scalars"), reg.RDX)
	for j := range scalarCount {
		VBROADCASTSS(Mem{Base: reg.RDX, Disp: 4 * j}, scalars[j])
	}
	Load(Param("n"), n)
	Load(Param("mask"), reg.R11)
	VXORPS(zero, zero, zero)
	XORQ(i, i)
	each := func(which string, f func(r reg.VecPhysical, m Mem)) {
		for j, r := range names {
			for _, w := range strings.Fields(which) {
				if r == w {
					f(rows[j], Mem{Base: at[r], Index: i, Scale: 4})
				}
			}
		}
	}
	SUBQ(Imm(8), n)
	JL(LabelRef("rest"))
	Label("loop")
	each(read, func(r reg.VecPhysical, m Mem) { VMOVUPS(m, r) })
	body()
	each(written, func(r reg.VecPhysical, m Mem) { VMOVUPS(r, m) })
	ADDQ(Imm(8), i)
	SUBQ(Imm(8), n)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(8), n)
	JE(LabelRef("done"))
	VMOVUPS(Mem{Base: reg.R11}, mask)
	each(read, func(r reg.VecPhysical, m Mem) { VMASKMOVPS(m, mask, r) })
	body()
	each(written, func(r reg.VecPhysical, m Mem) { VMASKMOVPS(r, mask, m) })
	Label("done")
	VZEROUPPER()
	RET()
}

var constants = map[uint32]Mem{}

// c is a vector of eight times v.
func c(v float64) Mem { return bits(math.Float32bits(float32(v))) }

func bits(b uint32) Mem {
	if m, ok := constants[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("vec%08x", b), attr.RODATA|attr.NOPTR)
	for i := range 8 {
		DATA(4*i, U32(b))
	}
	constants[b] = m
	return m
}

// exp makes e^x of x: x = n·ln 2 + r, a polynomial in r (Cephes' expf), and 2^n in two factors, for the sake of very
// small and very large results. NaN stays NaN: it is the second operand of max and min.
func exp(x reg.VecPhysical) {
	n, p, t := temps[0], temps[1], temps[2]
	VMOVUPS(c(89), t)
	VMINPS(x, t, x)
	VMOVUPS(c(-104), t)
	VMAXPS(x, t, x)
	VMULPS(c(math.Log2E), x, n)
	VROUNDPS(Imm(0), n, n)
	VFNMADD231PS(c(0.693359375), n, x)
	VFNMADD231PS(c(-2.12194440e-4), n, x)
	VMOVUPS(c(1.9875691500e-4), p)
	for _, a := range []float64{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1} {
		VFMADD213PS(c(a), x, p)
	}
	VCVTPS2DQ(n, n)
	VPSRAD(Imm(1), n, t)
	VPSUBD(t, n, n)
	for _, half := range []reg.VecPhysical{t, n} {
		VPADDD(bits(127), half, half)
		VPSLLD(Imm(23), half, half)
		VMULPS(half, p, p)
	}
	VMOVAPS(p, x)
}

// sigmoid is 1/(1+e^-x); x is lost.
func sigmoid(x, y reg.VecPhysical) {
	VSUBPS(x, zero, x)
	exp(x)
	VMOVUPS(c(1), y)
	VADDPS(y, x, x)
	VDIVPS(x, y, y)
}

// tanh is a polynomial for |x| < 0.625 (Cephes' tanhf) and 1 - 2/(e^2|x| + 1) beyond.
func tanh() {
	x, y, a, z := ymm[1], ymm[0], ymm[2], ymm[3]
	VANDPS(bits(0x7fffffff), x, a)
	VADDPS(a, a, y)
	exp(y)
	VADDPS(c(1), y, y)
	VMOVUPS(c(2), z)
	VDIVPS(y, z, z)
	VMOVUPS(c(1), y)
	VSUBPS(z, y, y)
	VANDPS(bits(0x80000000), x, z)
	VORPS(z, y, y)
	VMULPS(x, x, z)
	p := temps[0]
	VMOVUPS(c(-5.70498872745e-3), p)
	for _, k := range []float64{2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1} {
		VFMADD213PS(c(k), z, p)
	}
	VMULPS(x, z, z)
	VFMADD213PS(x, z, p)
	VMOVUPS(c(0.625), z)
	VCMPPS(Imm(2), a, z, z) // 0.625 <= |x|
	VBLENDVPS(z, y, p, y)
	VCMPPS(Imm(3), x, x, z) // NaN
	VBLENDVPS(z, x, y, y)
}

// normal makes Φ(x), from Φ(-|x|) = erfc(|x|/√2)/2 by Chebyshev's fit to log(erfc(z)/t) + z² in t = 1/(1 + z/2), which is
// good to 1.2e-7 of the result (Press et al., Numerical Recipes, erfcc).
func normal() {
	x, y, z, t := ymm[1], ymm[0], scalars[0], ymm[3]
	VANDPS(bits(0x7fffffff), x, z)
	VMULPS(c(math.Sqrt2/2), z, z)
	VMOVUPS(c(1), t)
	VMOVUPS(c(0.5), y)
	VFMADD213PS(t, z, y)
	VDIVPS(y, t, t)
	VMOVUPS(c(0.17087277), y)
	for _, k := range []float64{-0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223} {
		VFMADD213PS(c(k), t, y)
	}
	VFNMADD231PS(z, z, y)
	exp(y)
	VMULPS(t, y, y)
	VMULPS(c(0.5), y, y) // Φ(-|x|)
	VMOVUPS(c(1), t)
	VSUBPS(y, t, t) // Φ(|x|)
	VBLENDVPS(x, y, t, y)
}

// geluBack is dy · (Φ(x) + x·φ(x)).
func geluBack() {
	x, y, dy, z := ymm[1], ymm[0], ymm[2], ymm[3]
	normal()
	VMULPS(x, x, z)
	VMULPS(c(-0.5), z, z)
	exp(z)
	VMULPS(c(1/math.Sqrt(2*math.Pi)), z, z)
	VFMADD231PS(x, z, y)
	VMULPS(dy, y, y)
}

// geluTanhBack is dy · (s + x·s·(1-s)·u'), for s = sigmoid(u), u = 2·√(2/π)·(x + 0.044715·x³).
func geluTanhBack() {
	const scale, cubic = 2 * 0.7978845608028654, 0.044715
	x, y, dy, s, xx, u := ymm[1], ymm[0], ymm[2], ymm[3], scalars[0], scalars[1]
	VMULPS(x, x, xx)
	VMOVUPS(c(1e6), u) // where 1-s has long been 0, and must not meet an infinity
	VMINPS(xx, u, xx)
	VMOVUPS(c(scale*cubic), u)
	VFMADD213PS(c(scale), xx, u)
	VMULPS(x, u, u)
	sigmoid(u, s)
	VMOVUPS(c(3*scale*cubic), u)
	VFMADD213PS(c(scale), xx, u) // u'
	VMOVUPS(c(1), y)
	VSUBPS(s, y, y)
	VMULPS(s, y, y)
	VMULPS(x, y, y)
	VFMADD213PS(s, u, y)
	VMULPS(dy, y, y)
}

// sum adds in two times four lanes of float64, then those.
func sum() {
	TEXT("sumVec", NOSPLIT, "func(n int, x *float32, mask *int32) float64")
	Pragma("noescape")
	Doc("sumVec is a kernel of rows.")
	n, x := reg.RCX, reg.RSI
	Load(Param("n"), n)
	Load(Param("x"), x)
	Load(Param("mask"), reg.RDX)
	VMOVUPS(Mem{Base: reg.RDX}, mask)
	low, high := ymm[0], ymm[1]
	VXORPS(low, low, low)
	VXORPS(high, high, high)
	add := func() {
		VEXTRACTF128(Imm(1), ymm[2], reg.X3)
		VCVTPS2PD(reg.X2, ymm[2])
		VCVTPS2PD(reg.X3, ymm[3])
		VADDPD(ymm[2], low, low)
		VADDPD(ymm[3], high, high)
	}
	SUBQ(Imm(8), n)
	JL(LabelRef("rest"))
	Label("loop")
	VMOVUPS(Mem{Base: x}, ymm[2])
	add()
	ADDQ(Imm(32), x)
	SUBQ(Imm(8), n)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(8), n)
	JE(LabelRef("done"))
	VMASKMOVPS(Mem{Base: x}, mask, ymm[2])
	add()
	Label("done")
	VADDPD(high, low, low)
	VEXTRACTF128(Imm(1), low, reg.X1)
	VADDPD(reg.X1, reg.X0, reg.X0)
	VPERMILPD(Imm(1), reg.X0, reg.X1)
	VADDSD(reg.X1, reg.X0, reg.X0)
	Store(reg.X0, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
