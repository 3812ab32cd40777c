package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var mask = ymm[14] // of the last vector

// maximum passes over NaNs.
func maximum() {
	TEXT("maxVec", NOSPLIT, "func(n int, x *float32, mask *int32) float32")
	Pragma("noescape")
	Doc("maxVec is a kernel of rows.")
	n, x, least := reg.RCX, reg.RSI, ymm[15]
	Load(Param("n"), n)
	Load(Param("x"), x)
	Load(Param("mask"), reg.RDX)
	VMOVUPS(Mem{Base: reg.RDX}, mask)
	VMOVUPS(constant(0xff800000), least)
	VMOVAPS(least, ymm[0])
	SUBQ(Imm(8), n)
	JL(LabelRef("rest"))
	Label("loop")
	VMOVUPS(Mem{Base: x}, ymm[1])
	VMAXPS(ymm[0], ymm[1], ymm[0])
	ADDQ(Imm(32), x)
	SUBQ(Imm(8), n)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(8), n)
	JE(LabelRef("done"))
	VMASKMOVPS(Mem{Base: x}, mask, ymm[1])
	VBLENDVPS(mask, ymm[1], least, ymm[1])
	VMAXPS(ymm[0], ymm[1], ymm[0])
	Label("done")
	VEXTRACTF128(Imm(1), ymm[0], reg.X1)
	VMAXPS(reg.X1, reg.X0, reg.X0)
	VPERMILPS(Imm(0x4e), reg.X0, reg.X1)
	VMAXPS(reg.X1, reg.X0, reg.X0)
	VPERMILPS(Imm(0xb1), reg.X0, reg.X1)
	VMAXPS(reg.X1, reg.X0, reg.X0)
	Store(reg.X0, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// columns adds n rows, which are distance bytes apart, to four times `vectors` sums in float64.
func columns(name string, vectors int) {
	TEXT(name, NOSPLIT, "func(n int, sums *float64, x *float32, distance int)")
	Pragma("noescape")
	Doc(name + " is a kernel of rows.")
	n, s, x, distance := reg.RCX, reg.RDI, reg.RSI, reg.RDX
	Load(Param("n"), n)
	Load(Param("sums"), s)
	Load(Param("x"), x)
	Load(Param("distance"), distance)
	for j := range vectors {
		VMOVUPD(Mem{Base: s, Disp: 32 * j}, ymm[j])
	}
	Label("loop")
	for j := range vectors {
		t := ymm[8+j]
		VCVTPS2PD(Mem{Base: x, Disp: 16 * j}, t)
		VADDPD(t, ymm[j], ymm[j])
	}
	ADDQ(distance, x)
	DECQ(n)
	JNE(LabelRef("loop"))
	for j := range vectors {
		VMOVUPD(ymm[j], Mem{Base: s, Disp: 32 * j})
	}
	VZEROUPPER()
	RET()
}

// layerColumns adds 4·n gradients to sums, and times (x - mean)·inverse to products. The scalars are mean and inverse.
func layerColumns() {
	TEXT("layerColumnsVec", NOSPLIT, "func(n int, sums, products *float64, grad, x, scalars *float32)")
	Pragma("noescape")
	Doc("layerColumnsVec is a kernel of rows.")
	n, i, s, p, g, x := reg.RCX, reg.RAX, reg.RDI, reg.R8, reg.RSI, reg.RDX
	mean, inverse := reg.X8, ymm[9]
	Load(Param("scalars"), x)
	VBROADCASTSS(Mem{Base: x}, mean)
	VBROADCASTSS(Mem{Base: x, Disp: 4}, reg.X9)
	VCVTPS2PD(reg.X9, inverse)
	Load(Param("n"), n)
	Load(Param("sums"), s)
	Load(Param("products"), p)
	Load(Param("grad"), g)
	Load(Param("x"), x)
	XORQ(i, i)
	Label("loop")
	VMOVUPS(Mem{Base: x, Index: i, Scale: 4}, reg.X0)
	VSUBPS(mean, reg.X0, reg.X0)
	VCVTPS2PD(reg.X0, ymm[0])
	VCVTPS2PD(Mem{Base: g, Index: i, Scale: 4}, ymm[1])
	VADDPD(Mem{Base: s, Index: i, Scale: 8}, ymm[1], ymm[2])
	VMOVUPD(ymm[2], Mem{Base: s, Index: i, Scale: 8})
	VMULPD(ymm[0], ymm[1], ymm[0])
	VMULPD(inverse, ymm[0], ymm[0])
	VADDPD(Mem{Base: p, Index: i, Scale: 8}, ymm[0], ymm[0])
	VMOVUPD(ymm[0], Mem{Base: p, Index: i, Scale: 8})
	ADDQ(Imm(4), i)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
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
