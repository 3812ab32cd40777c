package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes the kernel that brings rows side by side: blocks of 8 values from each of up to 8 rows, ss bytes apart, become 8 rows of 8 values,
// ds bytes apart; rows that are not there are zero.
func transpose() {
	kernel("transpose32", "func(blocks int, src *float32, ss, rows int, dst *float32, ds int)",
		"makes columns of rows.")
	n, s, ss, rows, d, ds, p := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.RDI, reg.R8, reg.R9
	Load(Param("blocks"), n)
	Load(Param("src"), s)
	Load(Param("ss"), ss)
	Load(Param("rows"), rows)
	Load(Param("dst"), d)
	Load(Param("ds"), ds)
	Label("block")
	MOVQ(s, p)
	CMPQ(rows, Imm(8))
	JE(LabelRef("all"))
	for _, r := range ymm[:8] {
		VXORPS(r, r, r)
	}
	for i := range 7 {
		VMOVUPS(Mem{Base: p}, ymm[i])
		ADDQ(ss, p)
		CMPQ(rows, Imm(uint64(i+1)))
		JE(LabelRef("loaded"))
	}
	Label("all")
	for i := range 8 {
		VMOVUPS(Mem{Base: p}, ymm[i])
		if i < 7 {
			ADDQ(ss, p)
		}
	}
	Label("loaded")
	for i := 0; i < 8; i += 2 { // pairs of rows
		VUNPCKLPS(ymm[i+1], ymm[i], ymm[8+i])
		VUNPCKHPS(ymm[i+1], ymm[i], ymm[9+i])
	}
	for q := 0; q < 8; q += 4 { // fours of rows: ymm[q+c] holds columns c and c+4
		VUNPCKLPD(ymm[10+q], ymm[8+q], ymm[q])
		VUNPCKHPD(ymm[10+q], ymm[8+q], ymm[q+1])
		VUNPCKLPD(ymm[11+q], ymm[9+q], ymm[q+2])
		VUNPCKHPD(ymm[11+q], ymm[9+q], ymm[q+3])
	}
	for c := range 4 {
		VPERM2F128(Imm(0x20), ymm[4+c], ymm[c], ymm[8+c])
		VPERM2F128(Imm(0x31), ymm[4+c], ymm[c], ymm[12+c])
	}
	for c := range 8 {
		VMOVUPS(ymm[8+c], Mem{Base: d})
		ADDQ(ds, d)
	}
	ADDQ(Imm(32), s)
	DECQ(n)
	JNE(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// lines writes a kernel that goes through lines of n values of src and dst, sp and dp bytes apart: whole vectors of them,
// and what is left. Those of the lines whose values are neighbours are in steps of `from` and `to` vectors.
func lines(name, doc string, from, to int, vector, rest func(src, dst reg.GPPhysical)) {
	kernel(name, "func(lines, n int, src *float32, sp int, dst *float32, dp int, masks *int32)", doc)
	count, n, src, sp, dst, dp := reg.RBX, reg.RCX, reg.RSI, reg.RDX, reg.RDI, reg.R8
	blocks, s, d := reg.R9, reg.R10, reg.R11
	Load(Param("lines"), count)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("sp"), sp)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	Load(Param("masks"), reg.RAX)
	for j, m := range ymm[13:16] {
		VMOVUPS(Mem{Base: reg.RAX, Disp: 32 * j}, m)
	}
	VPCMPEQD(alternate, alternate, alternate)
	VPSRLQ(Imm(32), alternate, alternate)
	Label("line")
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(n, blocks)
	SUBQ(Imm(8), blocks)
	JL(LabelRef("rest"))
	Label("block")
	vector(s, d)
	ADDQ(Imm(uint64(32*from)), s)
	ADDQ(Imm(uint64(32*to)), d)
	SUBQ(Imm(8), blocks)
	JGE(LabelRef("block"))
	Label("rest")
	ADDQ(Imm(8), blocks)
	JE(LabelRef("next"))
	rest(s, d)
	Label("next")
	ADDQ(sp, src)
	ADDQ(dp, dst)
	DECQ(count)
	JNE(LabelRef("line"))
	VZEROUPPER()
	RET()
}

// masks of every other value, and of what is left: of neighbours, and of every other value
var alternate, whole, even = ymm[12], ymm[13], ymm[14:16]

func copyLines() {
	lines("copyLinesx8", "copies lines; it writes zeros after a line that is not of whole vectors.", 1, 1,
		func(src, dst reg.GPPhysical) {
			VMOVUPS(Mem{Base: src}, ymm[0])
			VMOVUPS(ymm[0], Mem{Base: dst})
		}, func(src, dst reg.GPPhysical) {
			VMASKMOVPS(Mem{Base: src}, whole, ymm[0])
			VMOVUPS(ymm[0], Mem{Base: dst})
		})
}

func gatherLines() {
	join := func(dst reg.GPPhysical) {
		VSHUFPS(Imm(0x88), ymm[1], ymm[0], ymm[2]) // 0 2 8 10 4 6 12 14
		VPERMPD(Imm(0xd8), ymm[2], ymm[2])
		VMOVUPS(ymm[2], Mem{Base: dst})
	}
	lines("gatherLinesx8", "takes every other value, and else is like copyLinesx8.", 2, 1,
		func(src, dst reg.GPPhysical) {
			VMOVUPS(Mem{Base: src}, ymm[0])
			VMASKMOVPS(Mem{Base: src, Disp: 32}, alternate, ymm[1]) // what follows the last may not exist
			join(dst)
		}, func(src, dst reg.GPPhysical) {
			VMASKMOVPS(Mem{Base: src}, even[0], ymm[0])
			VMASKMOVPS(Mem{Base: src, Disp: 32}, even[1], ymm[1])
			join(dst)
		})
}

func scatterLines() {
	split := func() {
		VPERMPD(Imm(0xd8), ymm[0], ymm[0]) // 0 1 4 5 2 3 6 7
		VUNPCKLPS(ymm[0], ymm[0], ymm[1])
		VUNPCKHPS(ymm[0], ymm[0], ymm[2])
	}
	lines("scatterLinesx8", "writes every other value.", 1, 2,
		func(src, dst reg.GPPhysical) {
			VMOVUPS(Mem{Base: src}, ymm[0])
			split()
			VBLENDPS(Imm(0xaa), Mem{Base: dst}, ymm[1], ymm[1])
			VMOVUPS(ymm[1], Mem{Base: dst})
			VMASKMOVPS(ymm[2], alternate, Mem{Base: dst, Disp: 32})
		}, func(src, dst reg.GPPhysical) {
			VMASKMOVPS(Mem{Base: src}, whole, ymm[0])
			split()
			VMASKMOVPS(ymm[1], even[0], Mem{Base: dst})
			VMASKMOVPS(ymm[2], even[1], Mem{Base: dst, Disp: 32})
		})
}
