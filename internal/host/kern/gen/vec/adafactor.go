package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Adafactor's rows are of 8·n elements and computed in float64, beside what belongs to the columns.
func adafactor() {
	columns, x, w := reg.RDI, reg.RSI, reg.R8
	start := func(name, signature string) {
		TEXT(name, NOSPLIT, signature)
		Pragma("noescape")
		Doc(name + " is a kernel of rows.")
		Load(Param("n"), n)
		Load(Param("columns"), columns)
		Load(Param("x"), x)
	}
	total := func(q int) reg.Register { return ymm[14+q] }
	each := func(body func(q int)) {
		XORQ(at, at)
		Label("loop")
		for q := range 2 {
			VCVTPS2PD(Mem{Base: x, Index: at, Scale: 4, Disp: 16 * q}, ymm[q])
			body(q)
		}
		ADDQ(Imm(8), at)
		DECQ(n)
		JNE(LabelRef("loop"))
	}
	column := func(q int) Mem { return Mem{Base: columns, Index: at, Scale: 8, Disp: 32 * q} }
	sum := func(body func(q int)) {
		for q := range 2 {
			VXORPD(total(q), total(q), total(q))
		}
		each(body)
		VADDPD(total(1), total(0), reg.Y0)
		VEXTRACTF128(Imm(1), reg.Y0, reg.X1)
		VADDPD(reg.X1, reg.X0, reg.X0)
		VPERMILPD(Imm(1), reg.X0, reg.X1)
		VADDSD(reg.X1, reg.X0, reg.X0)
		Store(reg.X0, ReturnIndex(0))
	}
	end := func() {
		VZEROUPPER()
		RET()
	}

	start("squareColumnsVec", "func(n int, columns *float64, x *float32) float64")
	sum(func(q int) {
		VMULPD(ymm[q], ymm[q], ymm[q])
		VADDPD(ymm[q], total(q), total(q))
		VADDPD(column(q), ymm[q], ymm[q])
		VMOVUPD(ymm[q], column(q))
	})
	end()

	start("scaledSquaresVec", "func(n int, columns *float64, x *float32) float64")
	sum(func(q int) {
		VMULPD(column(q), ymm[q], ymm[q])
		VFMADD231PD(ymm[q], ymm[q], total(q))
	})
	end()

	start("adafactorVec", "func(n int, columns *float64, w, x *float32, by float64, keep float32)")
	by, keep := reg.Y8, reg.X9
	Load(Param("w"), w)
	VBROADCASTSD(NewParamAddr("by", 32), by)
	VBROADCASTSS(NewParamAddr("keep", 40), keep)
	each(func(q int) {
		m := Mem{Base: w, Index: at, Scale: 4, Disp: 16 * q}
		VMULPD(column(q), by, reg.Y2)
		VMULPD(reg.Y2, ymm[q], ymm[q])
		VCVTPD2PSY(ymm[q], reg.X2)
		VMULPS(m, keep, reg.X3)
		VSUBPS(reg.X2, reg.X3, reg.X3)
		VMOVUPS(reg.X3, m)
	})
	end()
}
