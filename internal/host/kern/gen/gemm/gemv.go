package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dots512 writes c = a·bᵀ + d for mr rows of a and up to 16 of b, whose k values are neighbours, so that each is read once
// and nothing is packed. Rows of b become columns as in columns512, but for the order of the lanes, which the sums get at
// the end. Each sum has the order of its terms, and so the bits, that it has in any other kernel.
func dots512(mr int) {
	TEXT(fmt.Sprintf("dotsF32z%d", mr), NOSPLIT,
		"func(k int, a *float32, ars, acs int, b *float32, from *[7]int, c *float32, ldc int, d *float32, ldd int, order *uint32, mask uint32)")
	Pragma("noescape")
	k, a, ars, ars3, acs, from := reg.RCX, reg.RDI, reg.RDX, reg.RBX, reg.R15, reg.RAX
	src := []reg.GPPhysical{reg.RSI, reg.R8, reg.R9, reg.R10}
	step := []reg.GPPhysical{nil, reg.R11, reg.R12, reg.R13}
	Load(Param("k"), k)
	Load(Param("a"), a)
	Load(Param("ars"), ars)
	Load(Param("acs"), acs)
	Load(Param("b"), src[0])
	Load(Param("from"), from)
	for i := 1; i < 4; i++ {
		MOVQ(Mem{Base: from, Disp: 8 * i}, step[i])
		MOVQ(Mem{Base: from, Disp: 8 * (i + 3)}, src[i])
		ADDQ(src[0], src[i])
	}
	LEAQ(Mem{Base: ars, Index: ars, Scale: 2}, ars3)
	in, t, column, sums, x := zmm[0:4], zmm[4:8], zmm[8:12], zmm[16:16+mr], zmm[12:16]
	for _, s := range sums {
		VPXORD(s, s, s)
	}
	at := func(q, j int) Mem {
		m := Mem{Base: src[q]}
		if j > 0 {
			m.Index, m.Scale = step[j], 1
		}
		return m
	}
	unpack := func() {
		for q := 0; q < 4; q += 2 {
			VUNPCKLPS(in[q+1], in[q], t[q])
			VUNPCKHPS(in[q+1], in[q], t[q+1])
		}
		VUNPCKLPD(t[2], t[0], column[0])
		VUNPCKHPD(t[2], t[0], column[1])
		VUNPCKLPD(t[3], t[1], column[2])
		VUNPCKHPD(t[3], t[1], column[3])
	}
	add := func(c int) {
		for i, s := range sums {
			m := Mem{Base: a, Index: ars, Scale: uint8(i)}
			switch i {
			case 0:
				m = Mem{Base: a}
			case 3:
				m = Mem{Base: a, Index: ars3, Scale: 1}
			}
			VBROADCASTSS(m, x[i])
			VFMADD231PS(column[c], x[i], s)
		}
		ADDQ(acs, a)
	}
	SUBQ(Imm(4), k)
	JL(LabelRef("rest"))
	Label("loop")
	for j := range 4 {
		VMOVUPS(at(0, j), in[j].(reg.Vec).AsX())
		for q := 1; q < 4; q++ {
			VINSERTF32X4(Imm(uint64(q)), at(q, j), in[j], in[j])
		}
	}
	unpack()
	for _, s := range src {
		ADDQ(Imm(16), s)
	}
	for c := range 4 {
		add(c)
	}
	SUBQ(Imm(4), k)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(4), k)
	JE(LabelRef("sums"))
	MOVL(U32(1), reg.EAX) // so many values of each row
	SHLL(reg.CL, reg.EAX)
	DECL(reg.EAX)
	KMOVW(reg.EAX, reg.K2)
	for j := range 4 {
		VMOVUPS_Z(at(0, j), reg.K2, in[j].(reg.Vec).AsX())
		for q := 1; q < 4; q++ {
			VMOVUPS_Z(at(q, j), reg.K2, x[0].(reg.Vec).AsX())
			VINSERTF32X4(Imm(uint64(q)), x[0].(reg.Vec).AsX(), in[j], in[j])
		}
	}
	unpack()
	for c := range 3 {
		add(c)
		if c < 2 {
			DECQ(k)
			JE(LabelRef("sums"))
		}
	}
	Label("sums")
	c, ldc, d, ldd := reg.RSI, reg.RDI, reg.R8, reg.R9
	Load(Param("order"), from)
	VMOVUPS(Mem{Base: from}, order)
	Load(Param("mask"), reg.EAX)
	KMOVW(reg.EAX, reg.K1)
	for _, s := range sums {
		VPERMPS(s, order, s)
	}
	Load(Param("c"), c)
	Load(Param("ldc"), ldc)
	Load(Param("d"), d)
	Load(Param("ldd"), ldd)
	TESTQ(d, d)
	JE(LabelRef("store"))
	for _, s := range sums {
		VADDPS(Mem{Base: d}, s, reg.K1, s)
		ADDQ(ldd, d)
	}
	Label("store")
	for _, s := range sums {
		VMOVUPS(s, reg.K1, Mem{Base: c})
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
}
