package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// philox writes the numbers of n times 8 blocks of Philox 4x32-10, each block's four side by side. start is the first
// block's counter, four words, and its key, two. The first word of a counter must not overflow.
func philox() {
	TEXT("philoxVec", NOSPLIT, "func(n int, dst, start *uint32)")
	Pragma("noescape")
	Doc("philoxVec makes random numbers, for 8 blocks at a time.")
	n, dst, start := reg.RCX, reg.RDI, reg.RSI
	Load(Param("n"), n)
	Load(Param("dst"), dst)
	Load(Param("start"), start)
	c, keys, factors := ymm[:4], ymm[8:10], ymm[10:12]
	counter, odd, hi, even := ymm[15], ymm[4], ymm[5], ymm[6]
	steps := GLOBL("philoxBlocks", attr.RODATA|attr.NOPTR)
	for i := range 8 {
		DATA(4*i, U32(uint32(i)))
	}
	word := func(i int) Mem { return Mem{Base: start, Disp: 4 * i} }
	VPBROADCASTD(word(0), counter)
	VPADDD(steps, counter, counter)
	VMOVDQU(bits(0xD2511F53), factors[0])
	VMOVDQU(bits(0xCD9E8D57), factors[1])
	// multiply leaves the low words of x·f in x, and the high ones in high.
	multiply := func(x, f, high reg.VecPhysical) {
		VPSRLQ(Imm(32), x, odd)
		VPMULUDQ(f, x, even)
		VPMULUDQ(f, odd, odd)
		VPSRLQ(Imm(32), even, high)
		VPBLENDD(Imm(0xAA), odd, high, high)
		VPSLLQ(Imm(32), odd, odd)
		VPBLENDD(Imm(0xAA), odd, even, x)
	}
	Label("loop")
	VMOVDQA(counter, c[0])
	for i := 1; i < 4; i++ {
		VPBROADCASTD(word(i), c[i])
	}
	for i, k := range keys {
		VPBROADCASTD(word(4+i), k)
	}
	for round := range 10 {
		if round > 0 {
			VPADDD(bits(0x9E3779B9), keys[0], keys[0])
			VPADDD(bits(0xBB67AE85), keys[1], keys[1])
		}
		h0, h1 := hi, ymm[7]
		multiply(c[0], factors[0], h0)
		multiply(c[2], factors[1], h1)
		VPXOR(h1, c[1], c[1])
		VPXOR(keys[0], c[1], c[1])
		VPXOR(h0, c[3], c[3])
		VPXOR(keys[1], c[3], c[3])
		// c0, c1, c2, c3 = h1^c1^k0, l1, h0^c3^k1, l0
		c = []reg.VecPhysical{c[1], c[2], c[3], c[0]}
	}
	a, b, d, e := ymm[4], ymm[5], ymm[6], ymm[7]
	VPUNPCKLDQ(c[1], c[0], a)
	VPUNPCKHDQ(c[1], c[0], b)
	VPUNPCKLDQ(c[3], c[2], d)
	VPUNPCKHDQ(c[3], c[2], e)
	VPUNPCKLQDQ(d, a, c[0])
	VPUNPCKHQDQ(d, a, c[1])
	VPUNPCKLQDQ(e, b, c[2])
	VPUNPCKHQDQ(e, b, c[3])
	for i, v := range c { // blocks i and i+4
		VEXTRACTI128(Imm(0), v, Mem{Base: dst, Disp: 16 * i})
		VEXTRACTI128(Imm(1), v, Mem{Base: dst, Disp: 16 * (i + 4)})
	}
	VPADDD(bits(8), counter, counter)
	ADDQ(Imm(128), dst)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
