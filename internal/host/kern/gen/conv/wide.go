package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wideLine writes, for AVX-512, a kernel that goes through lines of n values of src and dst, sp and dp bytes apart, in
// vectors of 16 that are `from` and `to` vectors apart. The last vector of a line has K1, its lanes, and K2 and K3, every
// other lane of two, of which each vector before has all; block may use RAX and vectors up to 15.
func wideLine(name, doc string, from, to int, before func(), block func(src, dst reg.GPPhysical)) {
	avx512.kernel(name, "func(lines, n int, src *float32, sp int, dst *float32, dp int)", doc)
	count, n, src, sp, dst, dp := reg.RBX, reg.RCX, reg.RSI, reg.RDX, reg.RDI, reg.R8
	left, s, d, t, even := reg.R9, reg.R10, reg.R11, reg.R12, reg.R13
	Load(Param("lines"), count)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("sp"), sp)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	before()
	masks := func(lanes reg.GPPhysical) { // of up to 16
		MOVQ(I32(-1), reg.RAX)
		BZHIQ(lanes, reg.RAX, reg.RAX)
		KMOVW(reg.EAX, reg.K1)
		MOVL(U32(0x55555555), even.As32())
		LEAQ(Mem{Base: lanes, Index: lanes, Scale: 1}, reg.RAX)
		BZHIQ(reg.RAX, even, even)
		KMOVW(even.As32(), reg.K2)
		SHRQ(Imm(16), even)
		KMOVW(even.As32(), reg.K3)
	}
	// K4 to K6 are those of the last vector.
	MOVQ(n, t)
	DECQ(t)
	ANDQ(Imm(15), t)
	INCQ(t)
	masks(t)
	KMOVW(reg.K1, reg.K4)
	KMOVW(reg.K2, reg.K5)
	KMOVW(reg.K3, reg.K6)
	MOVQ(U32(16), t)
	Label("line")
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(n, left)
	SUBQ(Imm(16), left)
	JLE(LabelRef("rest"))
	masks(t)
	Label("block")
	block(s, d)
	ADDQ(U32(uint32(64*from)), s)
	ADDQ(U32(uint32(64*to)), d)
	SUBQ(Imm(16), left)
	JG(LabelRef("block"))
	Label("rest")
	KMOVW(reg.K4, reg.K1)
	KMOVW(reg.K5, reg.K2)
	KMOVW(reg.K6, reg.K3)
	block(s, d)
	ADDQ(sp, src)
	ADDQ(dp, dst)
	DECQ(count)
	JNE(LabelRef("line"))
	VZEROUPPER()
	RET()
}

// Indices of lanes: those of a vector, every other of two, and those of two in turns.
var numbers, evens, oddLanes, pairsLower, pairsUpper Mem

// table is a vector of 16 indices.
func table(name string, index func(lane int) int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(index(i))))
	}
	return m
}

func wideLines() {
	z := avx512.v
	numbers = table("convNumbers", func(i int) int { return i })
	oddLanes = table("convOdds", func(i int) int { return 2*i + 1 })
	pairsLower = table("convPairsLower", func(i int) int { return i/2 + i%2*16 })
	pairsUpper = table("convPairsUpper", func(i int) int { return 8 + i/2 + i%2*16 })
	wideLine("copyLines", "copies lines.", 1, 1, func() {}, func(src, dst reg.GPPhysical) {
		VMOVUPS_Z(Mem{Base: src}, reg.K1, z[0])
		VMOVUPS(z[0], reg.K1, Mem{Base: dst})
	})
	evens = table("convEvens", func(i int) int { return 2 * i })
	wideLine("gatherLines", "takes every other value.", 2, 1, func() {
		VMOVDQU32(evens, z[2])
	}, func(src, dst reg.GPPhysical) {
		VMOVUPS_Z(Mem{Base: src}, reg.K2, z[0])
		VMOVUPS_Z(Mem{Base: src, Disp: 64}, reg.K3, z[1])
		VPERMT2PS(z[1], z[2], z[0])
		VMOVUPS(z[0], reg.K1, Mem{Base: dst})
	})
	lower := table("convLower", func(i int) int { return i / 2 })
	upper := table("convUpper", func(i int) int { return 8 + i/2 })
	wideLine("scatterLines", "writes every other value.", 1, 2, func() {
		VMOVDQU32(lower, z[2])
		VMOVDQU32(upper, z[3])
	}, func(src, dst reg.GPPhysical) {
		VMOVUPS_Z(Mem{Base: src}, reg.K1, z[0])
		VPERMPS(z[0], z[2], z[1])
		VPERMPS(z[0], z[3], z[0])
		VMOVUPS(z[1], reg.K2, Mem{Base: dst})
		VMOVUPS(z[0], reg.K3, Mem{Base: dst, Disp: 64})
	})
}

// convPack writes the kernel that brings the values of k weights side by side: those of some segments of pixels, which
// are a place in the source, a lane of the result and a number. The results of a weight are dp bytes apart.
func convPack() {
	avx512.kernel("convPack", "func(k int, src *float32, off *int32, segments *int32, n int, dst *float32, dp int)",
		"packs n segments of each of k weights.")
	k, src, off, segments, n, dst, dp := reg.RCX, reg.RSI, reg.R8, reg.R9, reg.R10, reg.RDI, reg.RDX
	base, from, to, left, t := reg.RBX, reg.R11, reg.R12, reg.R13, reg.RAX
	z := avx512.v
	Load(Param("k"), k)
	Load(Param("src"), src)
	Load(Param("off"), off)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	Label("weight")
	MOVLQSX(Mem{Base: off}, t)
	LEAQ(Mem{Base: src, Index: t, Scale: 4}, base)
	Load(Param("segments"), segments)
	Load(Param("n"), n)
	Label("segment")
	MOVLQSX(Mem{Base: segments}, t)
	LEAQ(Mem{Base: base, Index: t, Scale: 4}, from)
	MOVLQSX(Mem{Base: segments, Disp: 4}, t)
	LEAQ(Mem{Base: dst, Index: t, Scale: 4}, to)
	MOVLQSX(Mem{Base: segments, Disp: 8}, left)
	SUBQ(Imm(16), left)
	JL(LabelRef("rest"))
	Label("vector")
	VMOVUPS(Mem{Base: from}, z[0])
	VMOVUPS(z[0], Mem{Base: to})
	ADDQ(Imm(64), from)
	ADDQ(Imm(64), to)
	SUBQ(Imm(16), left)
	JGE(LabelRef("vector"))
	Label("rest")
	ADDQ(Imm(16), left)
	JE(LabelRef("next"))
	lanesMask(left, t, reg.K1)
	VMOVUPS_Z(Mem{Base: from}, reg.K1, z[0])
	VMOVUPS(z[0], reg.K1, Mem{Base: to})
	Label("next")
	ADDQ(Imm(12), segments)
	DECQ(n)
	JNE(LabelRef("segment"))
	ADDQ(Imm(4), off)
	ADDQ(dp, dst)
	DECQ(k)
	JNE(LabelRef("weight"))
	VZEROUPPER()
	RET()
}

// gatherWeights writes the kernel that brings n weights of up to 16 channels, lane bytes apart, side by side: those at the
// places in from.
func gatherWeights() {
	avx512.kernel("gatherWeights", "func(n int, src *float32, from *int32, lane int, dst *float32, rows int)",
		"packs n weights of each of up to 16 channels.")
	n, src, from, dst, rows, t := reg.RCX, reg.RSI, reg.R8, reg.RDI, reg.RDX, reg.RAX
	z := avx512.v
	index := z[31]
	Load(Param("lane"), t)
	VPBROADCASTD(t.As32(), index)
	VPMULLD(numbers, index, index)
	Load(Param("rows"), rows)
	lanesMask(rows, t, reg.K1)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("from"), from)
	Load(Param("dst"), dst)
	Label("weight")
	MOVLQSX(Mem{Base: from}, t)
	LEAQ(Mem{Base: src, Index: t, Scale: 4}, t)
	KMOVW(reg.K1, reg.K2)
	VPXORD(z[0], z[0], z[0])
	VGATHERDPS(Mem{Base: t, Index: index, Scale: 1}, reg.K2, z[0])
	VMOVUPS(z[0], reg.K1, Mem{Base: dst})
	ADDQ(Imm(4), from)
	LEAQ(Mem{Base: dst, Index: rows, Scale: 4}, dst)
	DECQ(n)
	JNE(LabelRef("weight"))
	VZEROUPPER()
	RET()
}

// nineTaps loads 9 neighbours of each of 16 channels, whose places are in bytes from src, into the first 9 vectors. It
// takes 20 vectors, and asks for what comes some steps of `+"`next`"+` bytes later.
func nineTaps(src, places, next, ahead, t reg.GPPhysical) []reg.VecPhysical {
	z := avx512.v
	LEAQ(Mem{Base: src, Index: next, Scale: 8}, ahead)
	lower, upper, last := z[12:16], z[16:20], z[8]
	for r := range 16 {
		MOVQ(Mem{Base: places, Disp: 8 * r}, t)
		m := Mem{Base: src, Index: t, Scale: 1}
		PREFETCHT0(Mem{Base: ahead, Index: t, Scale: 1})
		if r < 4 {
			VMOVUPS(m, lower[r].AsX())
			VMOVUPS(m.Offset(16), upper[r].AsX())
		} else {
			VINSERTF32X4(Imm(uint64(r/4)), m, lower[r%4], lower[r%4])
			VINSERTF32X4(Imm(uint64(r/4)), m.Offset(16), upper[r%4], upper[r%4])
		}
	}
	transposeFours(lower, z[0:4], z[9:11])
	transposeFours(upper, z[4:8], z[9:11])
	KXNORW(reg.K2, reg.K2, reg.K2)
	KXNORW(reg.K3, reg.K3, reg.K3)
	VPXORD(last, last, last)
	VPXORD(z[9], z[9], z[9])
	VMOVDQU64(Mem{Base: places}, z[10])
	VMOVDQU64(Mem{Base: places, Disp: 64}, z[11])
	VGATHERQPS(Mem{Base: src, Index: z[10], Scale: 1, Disp: 32}, reg.K2, last.AsY())
	VGATHERQPS(Mem{Base: src, Index: z[11], Scale: 1, Disp: 32}, reg.K3, z[9].AsY())
	VINSERTF32X8(Imm(1), z[9].AsY(), last, last)
	return z[:9]
}

// packNines writes the kernel that brings some of 9 neighbours each of up to 16 channels side by side, n times: those with
// a bit in taps. See nineTaps for where they are.
func packNines() {
	avx512.kernel("packNines", "func(n int, src *float32, places *int64, next, taps int, dst *float32, rows int)",
		"packs some of n times 9 weights of each of up to 16 channels.")
	n, src, next, places, dst, rows, t, ahead, taps := reg.RCX, reg.RSI, reg.R8, reg.R9, reg.RDI, reg.RDX, reg.RAX, reg.R10, reg.R11
	Load(Param("rows"), rows)
	lanesMask(rows, t, reg.K1)
	SHLQ(Imm(2), rows)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("next"), next)
	Load(Param("places"), places)
	Load(Param("taps"), taps)
	Load(Param("dst"), dst)
	Label("weight")
	for i, v := range nineTaps(src, places, next, ahead, t) {
		without := fmt.Sprintf("without%d", i)
		BTQ(Imm(uint64(i)), taps)
		JCC(LabelRef(without))
		VMOVUPS(v, reg.K1, Mem{Base: dst})
		ADDQ(rows, dst)
		Label(without)
	}
	ADDQ(next, src)
	DECQ(n)
	JNE(LabelRef("weight"))
	VZEROUPPER()
	RET()
}

// transposeFours makes 4 vectors of 16 lanes of 4 that have, in each quarter, 4 neighbours of a lane.
func transposeFours(x, to, t []reg.VecPhysical) {
	VUNPCKLPS(x[1], x[0], t[0])
	VUNPCKHPS(x[1], x[0], x[0])
	VUNPCKLPS(x[3], x[2], t[1])
	VUNPCKHPS(x[3], x[2], x[2])
	VUNPCKLPD(t[1], t[0], to[0])
	VUNPCKHPD(t[1], t[0], to[1])
	VUNPCKLPD(x[2], x[0], to[2])
	VUNPCKHPD(x[2], x[0], to[3])
}

// untwist writes the kernel that brings the values of up to 16 channels, which are side by side, to lines of their own,
// dp bytes apart: 16 values of each at a time, or `+"`lanes`"+` of them. places are those of 16 values, in bytes from src. It adds
// if acc is not 0.
func untwist() {
	avx512.kernel("untwist", "func(n int, src *float32, places *int64, dst *float32, dp, channels, lanes, acc int)",
		"makes lines of n times 16 values, or lanes, of each channel.")
	n, src, places, dst, dp, channels, t, left, d, acc := reg.RCX, reg.RSI, reg.R9, reg.RDI, reg.RDX, reg.R8, reg.RAX, reg.R10, reg.R11, reg.R12
	z := avx512.v
	Load(Param("lanes"), t)
	lanesMask(t, n, reg.K1)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("places"), places)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	Load(Param("channels"), channels)
	Load(Param("acc"), acc)
	Label("block")
	MOVQ(channels, left)
	MOVQ(dst, d)
	for q := range 4 {
		x := z[4*(q%2):][:4]
		for r := range 16 {
			MOVQ(Mem{Base: places, Disp: 8 * r}, t)
			m := Mem{Base: src, Index: t, Scale: 1, Disp: 16 * q}
			if r < 4 {
				VMOVUPS(m, x[r].AsX())
			} else {
				VINSERTF32X4(Imm(uint64(r/4)), m, x[r%4], x[r%4])
			}
		}
		to := z[8+4*(q%2):][:4]
		transposeFours(x, to, z[16:18])
		for i, v := range to {
			plain := fmt.Sprintf("plain%d", 4*q+i)
			TESTQ(acc, acc)
			JE(LabelRef(plain))
			VMOVUPS_Z(Mem{Base: d}, reg.K1, z[18])
			VADDPS(z[18], v, v)
			Label(plain)
			VMOVUPS(v, reg.K1, Mem{Base: d})
			ADDQ(dp, d)
			DECQ(left)
			JE(LabelRef("next"))
		}
	}
	Label("next")
	MOVQ(Mem{Base: places, Disp: 8}, t)
	SHLQ(Imm(4), t)
	ADDQ(t, src)
	ADDQ(Imm(64), dst)
	DECQ(n)
	JNE(LabelRef("block"))
	VZEROUPPER()
	RET()
}
