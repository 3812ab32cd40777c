// Command half writes the assembly that converts rows from and to the 16-bit types.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!race")
	row("widenB16", "src *uint16, dst *float32", 16, 32, nil, func(src, dst Mem) {
		VPMOVZXWD(src, reg.Y0)
		VPSLLD(Imm(16), reg.Y0, reg.Y0)
		VMOVUPS(reg.Y0, dst)
	})
	row("widenF16", "src *uint16, dst *float32", 16, 32, nil, func(src, dst Mem) {
		VCVTPH2PS(src, reg.Y0)
		VMOVUPS(reg.Y0, dst)
	})
	row("narrowF16", "src *float32, dst *uint16", 32, 16, nil, func(src, dst Mem) {
		VMOVUPS(src, reg.Y0)
		VCVTPS2PH(Imm(0), reg.Y0, dst) // to nearest, ties to even
	})
	// As driver.ToB16 does: half a unit, less one bit unless the last bit kept is odd; a NaN gets a bit that stays.
	one, half, quiet := reg.Y15, reg.Y14, reg.Y13
	before := func() {
		VPCMPEQD(one, one, one)
		VPSRLD(Imm(17), one, half)
		VPSRLD(Imm(31), one, one)
		VPSLLD(Imm(6), one, quiet)
	}
	// cut adds Y2 to the bits in Y0 and stores their upper halves; Y1 has those of Y0.
	cut := func(dst Mem) {
		VPADDD(reg.Y0, reg.Y2, reg.Y2)
		VPSRLD(Imm(16), reg.Y2, reg.Y2)
		VPOR(quiet, reg.Y1, reg.Y1)
		VCMPPS(Imm(3), reg.Y0, reg.Y0, reg.Y0) // not a number
		VBLENDVPS(reg.Y0, reg.Y1, reg.Y2, reg.Y2)
		VEXTRACTI128(Imm(1), reg.Y2, reg.X1)
		VPACKUSDW(reg.X1, reg.X2, reg.X2)
		VMOVDQU(reg.X2, dst)
	}
	row("narrowB16", "src *float32, dst *uint16", 32, 16, before, func(src, dst Mem) {
		VMOVUPS(src, reg.Y0)
		VPSRLD(Imm(16), reg.Y0, reg.Y1)
		VPAND(one, reg.Y1, reg.Y2)
		VPADDD(half, reg.Y2, reg.Y2)
		cut(dst)
	})
	row("roundB16", "src *float32, dst, numbers *uint16", 32, 16, func() {
		before()
		Load(Param("numbers"), reg.RDX)
	}, func(src, dst Mem) { // numbers are as long as dst
		VMOVUPS(src, reg.Y0)
		VPSRLD(Imm(16), reg.Y0, reg.Y1)
		VPMOVZXWD(Mem{Base: reg.RDX}, reg.Y2)
		ADDQ(Imm(16), reg.RDX)
		cut(dst)
	})
	wide("widenB16z", "src *uint16, dst *float32", 32, 64, nil, func(src, dst Mem, last bool) {
		if last {
			VPMOVZXWD_Z(src, reg.K1, reg.Z0)
			VPSLLD(Imm(16), reg.Z0, reg.Z0)
			VMOVUPS(reg.Z0, reg.K1, dst)
			return
		}
		VPMOVZXWD(src, reg.Z0)
		VPSLLD(Imm(16), reg.Z0, reg.Z0)
		VMOVUPS(reg.Z0, dst)
	})
	wide("widenF16z", "src *uint16, dst *float32", 32, 64, nil, func(src, dst Mem, last bool) {
		if last {
			VCVTPH2PS_Z(src, reg.K1, reg.Z0)
			VMOVUPS(reg.Z0, reg.K1, dst)
			return
		}
		VCVTPH2PS(src, reg.Z0)
		VMOVUPS(reg.Z0, dst)
	})
	wide("narrowF16z", "src *float32, dst *uint16", 64, 32, nil, func(src, dst Mem, last bool) {
		if last {
			VMOVUPS_Z(src, reg.K1, reg.Z0)
			VCVTPS2PH(Imm(0), reg.Z0, reg.K1, dst)
			return
		}
		VMOVUPS(src, reg.Z0)
		VCVTPS2PH(Imm(0), reg.Z0, dst)
	})
	// AVX512-BF16's own conversion makes 0 of what is too small for a normal number.
	wide("narrowB16z", "src *float32, dst *uint16", 64, 32, func() {
		MOVL(U32(1), reg.EAX)
		VPBROADCASTD(reg.EAX, reg.Z15)
		MOVL(U32(0x7fff), reg.EAX)
		VPBROADCASTD(reg.EAX, reg.Z14)
		MOVL(U32(0x400000), reg.EAX)
		VPBROADCASTD(reg.EAX, reg.Z13)
	}, func(src, dst Mem, last bool) {
		if last {
			VMOVUPS_Z(src, reg.K1, reg.Z0)
		} else {
			VMOVUPS(src, reg.Z0)
		}
		VCMPPS(Imm(3), reg.Z0, reg.Z0, reg.K2) // not a number
		VPSRLD(Imm(16), reg.Z0, reg.Z1)
		VPANDD(reg.Z15, reg.Z1, reg.Z1)
		VPADDD(reg.Z14, reg.Z1, reg.Z1)
		VPADDD(reg.Z1, reg.Z0, reg.Z1)
		VPORD(reg.Z13, reg.Z0, reg.K2, reg.Z1)
		VPSRLD(Imm(16), reg.Z1, reg.Z1)
		VPMOVDW(reg.Z1, reg.Y1)
		if last {
			VMOVDQU16(reg.Y1, reg.K1, dst)
		} else {
			VMOVDQU16(reg.Y1, dst)
		}
	})
	Generate()
}

// wide is a function that converts n elements, so many bytes of src to so many of dst for 16 of them, of which K1 exist if
// they are the last. The others have no mask: Zen 5 takes four times as long for a masked load of what is not in the cache.
func wide(name, parameters string, from, to uint64, before func(), block func(src, dst Mem, last bool)) {
	TEXT(name, NOSPLIT, "func(n int, "+parameters+")")
	Pragma("noescape")
	n, src, dst := reg.RCX, reg.RSI, reg.RDI
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("dst"), dst)
	if before != nil {
		before()
	}
	SUBQ(Imm(16), n)
	JL(LabelRef("rest"))
	Label("loop")
	block(Mem{Base: src}, Mem{Base: dst}, false)
	ADDQ(U32(uint32(from)), src)
	ADDQ(U32(uint32(to)), dst)
	SUBQ(Imm(16), n)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(16), n)
	JE(LabelRef("done"))
	MOVL(U32(1), reg.EAX)
	SHLL(reg.CL, reg.EAX)
	DECL(reg.EAX)
	KMOVW(reg.EAX, reg.K1)
	block(Mem{Base: src}, Mem{Base: dst}, true)
	Label("done")
	VZEROUPPER()
	RET()
}

// row is a function that converts blocks of 8 elements, so many bytes of src to so many of dst.
func row(name, parameters string, from, to uint64, before func(), block func(src, dst Mem)) {
	TEXT(name, NOSPLIT, "func(blocks int, "+parameters+")")
	Pragma("noescape")
	n, src, dst := reg.RCX, reg.RSI, reg.RDI
	Load(Param("blocks"), n)
	Load(Param("src"), src)
	Load(Param("dst"), dst)
	if before != nil {
		before()
	}
	Label("loop")
	block(Mem{Base: src}, Mem{Base: dst})
	ADDQ(Imm(from), src)
	ADDQ(Imm(to), dst)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
