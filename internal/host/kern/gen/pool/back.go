package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sixteen is a table of as many numbers.
func sixteen(name string, number func(i int) int) Mem {
	m := GLOBL(name, attr.RODATA|attr.NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(number(i))))
	}
	return m
}

const ahead = 4096 // bytes from where memory is at work to where it is asked for

// maxPoolBack writes a row of w elements of an image: what gradients of windows of width `kernel`, two columns apart, the
// first of which begins padding columns before the row, bring to it. Of one or two rows of ow windows, in order, the first
// has the row's places from tap on, and the second two rows of places before them.
func maxPoolBack(name string, kernel int) {
	low := sixteen(name+"Low", func(i int) int { return i/2 + i%2*16 })
	high := sixteen(name+"High", func(i int) int { return 8 + i/2 + i%2*16 })
	TEXT(name, NOSPLIT, "func(dst, dy *float32, place *uint8, w, ow, rows, tap, padding int)")
	Pragma("noescape")
	dst, dy, place, rest, rem := reg.RDI, reg.RSI, reg.RDX, reg.RCX, reg.R8
	ow, rows, column, j := reg.R9, reg.R10, reg.R11, reg.RAX
	Load(Param("dst"), dst)
	Load(Param("dy"), dy)
	Load(Param("place"), place)
	Load(Param("w"), rest)
	Load(Param("ow"), rem)
	Load(Param("rows"), rows)
	Load(Param("tap"), reg.RAX)
	Load(Param("padding"), column)
	taps := [2][]reg.VecPhysical{{reg.Z16, reg.Z17, reg.Z18}, {reg.Z19, reg.Z20, reg.Z21}}
	before := []reg.VecPhysical{reg.Z22, reg.Z23}
	for q := range taps {
		for k := range kernel {
			LEAQ(Mem{Base: reg.RAX, Disp: k - 2*kernel*q}, reg.RBX)
			VPBROADCASTD(reg.EBX, taps[q][k])
		}
		VPXORD(before[q], before[q], before[q])
	}
	VMOVDQU32(low, reg.Z24)
	VMOVDQU32(high, reg.Z25)
	MOVQ(rem, ow)
	ADDQ(column, rest) // elements from the first window on
	MOVL(I32(-1), reg.EBX)
	SHLXL(reg.R11L, reg.EBX, reg.EBX) // those that there are of the first 32
	SHLQ(Imm(2), column)
	SUBQ(column, dst)
	XORQ(j, j)
	even, odd, g, p, part := reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4
	Label("block")
	PREFETCHT0(Mem{Base: dst, Disp: ahead})
	PREFETCHT0(Mem{Base: dst, Disp: ahead + 64})
	VPXORD(even, even, even)
	VPXORD(odd, odd, odd)
	m := reg.R12
	MOVQ(U32(16), m)
	CMPQ(rem, m)
	CMOVQLT(rem, m)
	XORL(reg.R13L, reg.R13L)
	TESTQ(m, m)
	CMOVQLT(reg.R13, m)
	MOVL(I32(-1), reg.R13L)
	BZHIL(m.As32(), reg.R13L, reg.R13L)
	KMOVW(reg.R13L, reg.K1)
	from, places := reg.R13, reg.R12
	MOVQ(dy, from)
	MOVQ(place, places)
	for q := range taps {
		if q == 1 {
			CMPQ(rows, Imm(2))
			JL(LabelRef("write"))
			LEAQ(Mem{Base: from, Index: ow, Scale: 4}, from)
			ADDQ(ow, places)
		}
		VMOVUPS_Z(Mem{Base: from, Index: j, Scale: 4}, reg.K1, g)
		VPMOVZXBD_Z(Mem{Base: places, Index: j, Scale: 1}, reg.K1, p)
		if kernel == 3 { // what windows bring to where the next ones begin
			VPCMPEQD(taps[q][2], p, reg.K2)
			VMOVAPS_Z(g, reg.K2, part)
			VALIGND(Imm(15), before[q], part, reg.Z5)
			VADDPS(reg.Z5, even, even)
			VMOVAPS(part, before[q])
		}
		VPCMPEQD(taps[q][0], p, reg.K2)
		VADDPS(g, even, reg.K2, even)
		VPCMPEQD(taps[q][1], p, reg.K2)
		VADDPS(g, odd, reg.K2, odd)
	}
	Label("write")
	VMOVDQA32(reg.Z24, g)
	VPERMI2PS(odd, even, g)
	VMOVDQA32(reg.Z25, p)
	VPERMI2PS(odd, even, p)
	MOVQ(U32(32), m)
	CMPQ(rest, m)
	CMOVQLT(rest, m)
	BZHIL(m.As32(), reg.EBX, reg.EBX)
	KMOVW(reg.EBX, reg.K2)
	SHRL(Imm(16), reg.EBX)
	KMOVW(reg.EBX, reg.K3)
	VMOVUPS(g, reg.K2, Mem{Base: dst})
	VMOVUPS(p, reg.K3, Mem{Base: dst, Disp: 64})
	MOVL(I32(-1), reg.EBX)
	ADDQ(U32(128), dst)
	ADDQ(Imm(16), j)
	SUBQ(Imm(16), rem)
	SUBQ(Imm(32), rest)
	JG(LabelRef("block"))
	VZEROUPPER()
	RET()
}
