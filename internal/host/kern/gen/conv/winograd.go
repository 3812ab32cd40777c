package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of Winograd's F(2x2, 3x3), for AVX-512; see conv_winograd.go. Lanes are tiles, but of the weights and the
// gradient's tiles, where they are output channels.
func winograd() {
	winoInput()
	winoOutput()
	for _, pieces := range []int{1, 2, 4} {
		winoInputLines(pieces)
		winoOutputLines(pieces)
	}
	winoWeights()
	winoGradient()
	winoWeightsBack()
}

// lanesMask makes a mask of the first n lanes.
func lanesMask(n reg.GPPhysical, t reg.GPPhysical, k reg.OpmaskPhysical) {
	MOVQ(I32(-1), t)
	BZHIQ(n, t, t)
	KMOVW(t.As32(), k)
}

// winoInput writes the transform of a vector of tiles, 4x4 values each, of each channel. The first of four rows begins
// `first` bytes after src. Of the rows and of the columns from there on those in a mask exist; others are zeros.
func winoInput() {
	avx512.kernel("winoInput", "func(channels int, src *float32, plane, first, line int, rows, columns uint64, dst *float32, dp, fp, n int)",
		"transforms n tiles of each channel: 16 results, fp bytes apart.")
	z := avx512.v
	even, odd := z[31], z[30]
	VMOVDQU32(evens, even)
	VMOVDQU32(oddLanes, odd)
	count, src, plane, rows, dst, dp, fp, t, line, row := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.RDI, reg.R8, reg.R9, reg.RAX, reg.R11, reg.R10
	Load(Param("columns"), t)
	KMOVW(t.As32(), reg.K1)
	SHRQ(Imm(2), t)
	KMOVW(t.As32(), reg.K3)
	SHRQ(Imm(14), t)
	KMOVW(t.As32(), reg.K2)
	SHRQ(Imm(2), t)
	KMOVW(t.As32(), reg.K4)
	Load(Param("n"), t)
	lanesMask(t, reg.R10, reg.K5)
	Load(Param("channels"), count)
	Load(Param("src"), src)
	Load(Param("plane"), plane)
	Load(Param("rows"), rows)
	Load(Param("line"), line)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	Load(Param("fp"), fp)
	Label("channel")
	MOVQ(NewParamAddr("first", 24), row)
	ADDQ(src, row)
	d := func(r, c int) reg.VecPhysical { return z[4*r+c] }
	for r := range 4 {
		zero, done := "zero"+string(rune('0'+r)), "done"+string(rune('0'+r))
		BTQ(Imm(uint64(r)), rows)
		JCC(LabelRef(zero))
		at := Mem{Base: row}
		x := z[16:24]
		VMOVUPS_Z(at, reg.K1, x[0])
		VMOVUPS_Z(at.Offset(64), reg.K2, x[1])
		VMOVUPS_Z(at.Offset(8), reg.K3, x[2])
		VMOVUPS_Z(at.Offset(72), reg.K4, x[3])
		VMOVAPS(x[0], x[4])
		VMOVAPS(x[2], x[5])
		VPERMT2PS(x[1], even, x[0])
		VPERMT2PS(x[1], odd, x[4])
		VPERMT2PS(x[3], even, x[2])
		VPERMT2PS(x[3], odd, x[5])
		// columns 0 to 3 are x[0], x[4], x[2], x[5]
		VSUBPS(x[2], x[0], d(r, 0))
		VADDPS(x[2], x[4], d(r, 1))
		VSUBPS(x[4], x[2], d(r, 2))
		VSUBPS(x[5], x[4], d(r, 3))
		JMP(LabelRef(done))
		Label(zero)
		avx512.clear(z[4*r : 4*r+4])
		Label(done)
		ADDQ(line, row)
	}
	MOVQ(dst, t)
	for r := range 4 {
		for c := range 4 {
			v := z[16+c]
			switch r {
			case 0:
				VSUBPS(d(2, c), d(0, c), v)
			case 1:
				VADDPS(d(2, c), d(1, c), v)
			case 2:
				VSUBPS(d(1, c), d(2, c), v)
			case 3:
				VSUBPS(d(3, c), d(1, c), v)
			}
			VMOVUPS(v, reg.K5, Mem{Base: t})
			ADDQ(fp, t)
		}
	}
	ADDQ(plane, src)
	ADDQ(dp, dst)
	DECQ(count)
	JNE(LabelRef("channel"))
	VZEROUPPER()
	RET()
}

// winoOutput writes the way back: 2x2 pixels of each of n tiles, of each channel. There are `columns` pixels of a line,
// and no second line where its distance is 0.
func winoOutput() {
	avx512.kernel("winoOutput", "func(channels int, src *float32, sp, fp int, bias *float32, dst *float32, plane, line, columns int)",
		"makes pixels, and adds each channel's bias, of 16 values a tile.")
	z := avx512.v
	low, high := z[31], z[30]
	VMOVDQU32(pairsLower, low)
	VMOVDQU32(pairsUpper, high)
	count, src, sp, fp, bias, dst, plane, line, t := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.R10, reg.RDI, reg.R8, reg.R9, reg.RAX
	Load(Param("columns"), t)
	lanesMask(t, reg.R11, reg.K1)
	SHRQ(Imm(16), reg.R11)
	KMOVW(reg.R11.As32(), reg.K2)
	Load(Param("channels"), count)
	Load(Param("src"), src)
	Load(Param("sp"), sp)
	Load(Param("fp"), fp)
	Load(Param("bias"), bias)
	Load(Param("dst"), dst)
	Load(Param("plane"), plane)
	Load(Param("line"), line)
	Label("channel")
	pixels := winoPixels(src, fp, bias, t)
	rest := z[17:19]
	for r, row := range pixels {
		VMOVAPS(row[0], rest[r])
		VPERMT2PS(row[1], low, row[0])
		VPERMT2PS(row[1], high, rest[r])
	}
	VMOVUPS(pixels[0][0], reg.K1, Mem{Base: dst})
	VMOVUPS(rest[0], reg.K2, Mem{Base: dst, Disp: 64})
	TESTQ(line, line)
	JE(LabelRef("noLine"))
	VMOVUPS(pixels[1][0], reg.K1, Mem{Base: dst, Index: line, Scale: 1})
	VMOVUPS(rest[1], reg.K2, Mem{Base: dst, Index: line, Scale: 1, Disp: 64})
	Label("noLine")
	ADDQ(sp, src)
	ADDQ(plane, dst)
	DECQ(count)
	JNE(LabelRef("channel"))
	VZEROUPPER()
	RET()
}

// A piece is a part of a line in a vector: where the vector would begin if it were all there, from the source, and a mask
// of the lanes of the part.
const pieceSize = 16

// winoInputLines writes winoInput for lines so short that two vectors hold `+"`pieces`"+` of them each: a vector of tiles is of
// several lines. pieces has those of the first vector and those of the second, for each of the four rows. Of the columns
// of tiles, index says in which lanes of both vectors they are, and lanes has 16 bits each of what exists.
func winoInputLines(pieces int) {
	avx512.kernel(fmt.Sprintf("winoInputLines%d", pieces),
		"func(channels int, src *float32, plane int, pieces *int64, index *int32, lanes uint64, dst *float32, dp, fp int)",
		"transforms 16 tiles of short lines of each channel: 16 results, fp bytes apart.")
	z := avx512.v
	count, src, plane, table, dst, dp, fp, t := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.RDI, reg.R8, reg.R9, reg.RAX
	index, exist := z[28:32], []reg.OpmaskPhysical{reg.K4, reg.K5, reg.K6, reg.K7}
	Load(Param("index"), t)
	for i, v := range index {
		VMOVDQU32(Mem{Base: t, Disp: 64 * i}, v)
	}
	Load(Param("lanes"), t)
	for i, k := range exist {
		if i > 0 {
			SHRQ(Imm(16), t)
		}
		KMOVW(t.As32(), k)
	}
	Load(Param("channels"), count)
	Load(Param("src"), src)
	Load(Param("plane"), plane)
	Load(Param("pieces"), table)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	Load(Param("fp"), fp)
	Label("channel")
	d := func(r, half int) reg.VecPhysical { return z[2*r+half] }
	for i := range 8 * pieces {
		at, k, v := Mem{Base: table, Disp: pieceSize * i}, masksK[i%2], z[i/pieces]
		MOVQ(at, t)
		KMOVW(at.Offset(8), k)
		if m := (Mem{Base: src, Index: t, Scale: 1}); i%pieces == 0 {
			VMOVUPS_Z(m, k, v)
		} else {
			VMOVUPS(m, k, v)
		}
	}
	sum, difference := z[8:10], z[10:12]
	for h := range 2 {
		VADDPS(d(2, h), d(1, h), sum[h])
		VSUBPS(d(1, h), d(2, h), difference[h])
		VSUBPS(d(2, h), d(0, h), d(0, h))
		VSUBPS(d(3, h), d(1, h), d(3, h))
	}
	MOVQ(dst, t)
	for r, row := range [][]reg.VecPhysical{z[0:2], sum, difference, z[6:8]} {
		x := z[12+4*(r%2):][:4]
		for c, v := range x {
			VMOVDQA32(index[c], v)
			VPERMI2PS_Z(row[1], row[0], exist[c], v)
		}
		for c := range 4 {
			v := z[20+4*(r%2)+c]
			switch c {
			case 0:
				VSUBPS(x[2], x[0], v)
			case 1:
				VADDPS(x[2], x[1], v)
			case 2:
				VSUBPS(x[1], x[2], v)
			case 3:
				VSUBPS(x[3], x[1], v)
			}
			VMOVUPS(v, Mem{Base: t})
			ADDQ(fp, t)
		}
	}
	ADDQ(plane, src)
	ADDQ(dp, dst)
	DECQ(count)
	JNE(LabelRef("channel"))
	VZEROUPPER()
	RET()
}

// winoOutputLines writes winoOutput for such lines. pieces has those of the first lines of tiles, of both vectors, and
// those of the second; index says where in the even and the odd columns those of a vector are.
func winoOutputLines(pieces int) {
	avx512.kernel(fmt.Sprintf("winoOutputLines%d", pieces),
		"func(channels int, src *float32, sp, fp int, bias *float32, dst *float32, plane int, pieces *int64, index *int32)",
		"makes pixels of short lines, and adds each channel's bias, of 16 values a tile.")
	z := avx512.v
	count, src, sp, fp, bias, dst, plane, table, t := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.R10, reg.RDI, reg.R8, reg.R9, reg.RAX
	index := z[30:32]
	Load(Param("index"), t)
	for i, v := range index {
		VMOVDQU32(Mem{Base: t, Disp: 64 * i}, v)
	}
	Load(Param("channels"), count)
	Load(Param("src"), src)
	Load(Param("sp"), sp)
	Load(Param("fp"), fp)
	Load(Param("bias"), bias)
	Load(Param("dst"), dst)
	Load(Param("plane"), plane)
	Load(Param("pieces"), table)
	Label("channel")
	pixels := winoPixels(src, fp, bias, t)
	for r, row := range pixels {
		for h := range 2 {
			v := z[16+2*r+h]
			VMOVDQA32(index[h], v)
			VPERMI2PS(row[1], row[0], v)
			for i := range pieces {
				at, k := Mem{Base: table, Disp: pieceSize * ((2*r+h)*pieces + i)}, masksK[i%2]
				MOVQ(at, t)
				KMOVW(at.Offset(8), k)
				VMOVUPS(v, k, Mem{Base: dst, Index: t, Scale: 1})
			}
		}
	}
	ADDQ(sp, src)
	ADDQ(plane, dst)
	DECQ(count)
	JNE(LabelRef("channel"))
	VZEROUPPER()
	RET()
}

// winoPixels makes 2x2 pixels, with the bias, of 16 values a tile: both lines' even and odd columns.
func winoPixels(src, fp, bias, t reg.GPPhysical) [2][2]reg.VecPhysical {
	z := avx512.v
	MOVQ(src, t)
	m := func(r, c int) reg.VecPhysical { return z[4*r+c] }
	for r := range 4 {
		for c := range 4 {
			VMOVUPS(Mem{Base: t}, m(r, c))
			if r < 3 || c < 3 {
				ADDQ(fp, t)
			}
		}
	}
	b := z[16]
	avx512.clear(z[16:17])
	TESTQ(bias, bias)
	JE(LabelRef("noBias"))
	VBROADCASTSS(Mem{Base: bias}, b)
	ADDQ(Imm(4), bias)
	Label("noBias")
	for c := range 4 {
		VADDPS(m(1, c), m(0, c), m(0, c)) // 0+1+2
		VADDPS(m(2, c), m(0, c), m(0, c))
		VSUBPS(m(2, c), m(1, c), m(1, c)) // 1-2-3
		VSUBPS(m(3, c), m(1, c), m(1, c))
	}
	for r := range 2 {
		VADDPS(m(r, 1), m(r, 0), m(r, 0))
		VADDPS(m(r, 2), m(r, 0), m(r, 0))
		VADDPS(b, m(r, 0), m(r, 0))
		VSUBPS(m(r, 2), m(r, 1), m(r, 1))
		VSUBPS(m(r, 3), m(r, 1), m(r, 1))
		VADDPS(b, m(r, 1), m(r, 1))
	}
	return [2][2]reg.VecPhysical{{m(0, 0), m(0, 1)}, {m(1, 0), m(1, 1)}}
}

// winoWeights writes the transform of n weights of 9 taps, of some channels, to 16 values each, where the channels are side
// by side. See nineTaps for where they are.
func winoWeights() {
	avx512.kernel("winoWeights", "func(n int, src *float32, places *int64, next int, dst *float32, rows, fp int)",
		"transforms n weights of each of up to 16 channels.")
	z := avx512.v
	n, src, next, places, dst, rows, fp, t, ahead := reg.RCX, reg.RSI, reg.R8, reg.R9, reg.RDI, reg.RDX, reg.RBX, reg.RAX, reg.R10
	half := z[31]
	Load(Param("rows"), rows)
	lanesMask(rows, t, reg.K1)
	SHLQ(Imm(2), rows)
	MOVL(U32(0x3f000000), t.As32())
	VPBROADCASTD(t.As32(), half)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("next"), next)
	Load(Param("places"), places)
	Load(Param("dst"), dst)
	Load(Param("fp"), fp)
	Label("weight")
	g := nineTaps(src, places, next, ahead, t)
	// expand makes of three values these, the half of the sum of all, that with the second negative, and the last.
	expand := func(a, b, c reg.VecPhysical, plus, minus reg.VecPhysical) {
		VADDPS(c, a, plus)
		VSUBPS(b, plus, minus)
		VADDPS(b, plus, plus)
		VMULPS(half, minus, minus)
		VMULPS(half, plus, plus)
	}
	for c := range 3 {
		expand(g[c], g[3+c], g[6+c], z[9+c], z[12+c])
	}
	MOVQ(dst, t)
	for r := range 4 {
		row := []int{0, 9, 12, 6}[r]
		a, b, c := z[row], z[row+1], z[row+2]
		expand(a, b, c, z[15], z[16])
		for _, v := range []reg.VecPhysical{a, z[15], z[16], c} {
			VMOVUPS(v, reg.K1, Mem{Base: t})
			ADDQ(fp, t)
		}
	}
	ADDQ(next, src)
	ADDQ(rows, dst)
	DECQ(n)
	JNE(LabelRef("weight"))
	VZEROUPPER()
	RET()
}

// winoGradient writes the transform of n tiles of 2x2 gradients of 16 output channels, pixel bytes apart, which are on
// two lines. Where a factor is -1 it is left out: winoWeightsBack has it.
func winoGradient() {
	avx512.kernel("winoGradient", "func(n int, src *float32, pixel, line int, dst *float32, fp int)",
		"transforms n tiles of 16 channels: 16 results, fp bytes apart.")
	z := avx512.v
	n, src, pixel, line, dst, fp, t := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.RDI, reg.R8, reg.RAX
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("pixel"), pixel)
	Load(Param("line"), line)
	Load(Param("dst"), dst)
	Load(Param("fp"), fp)
	Label("tile")
	LEAQ(Mem{Base: src, Index: line, Scale: 1}, t)
	for r, base := range []reg.GPPhysical{src, t} {
		a, b := z[4*r], z[4*r+3]
		VMOVUPS(Mem{Base: base}, a)
		VMOVUPS(Mem{Base: base, Index: pixel, Scale: 1}, b)
		VADDPS(b, a, z[4*r+1])
		VSUBPS(b, a, z[4*r+2])
	}
	for c := range 4 {
		VADDPS(z[4+c], z[c], z[8+c])
		VSUBPS(z[4+c], z[c], z[12+c])
	}
	MOVQ(dst, t)
	for _, first := range []int{0, 8, 12, 4} {
		for c := range 4 {
			VMOVUPS(z[first+c], Mem{Base: t})
			ADDQ(fp, t)
		}
	}
	LEAQ(Mem{Base: src, Index: pixel, Scale: 2}, src)
	ADDQ(pixel, dst)
	DECQ(n)
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// winoWeightsBack writes the way from 16 sums to the gradients of 9 taps, for 16 output channels side by side.
func winoWeightsBack() {
	avx512.kernel("winoWeightsBack", "func(n int, src *float32, sp, fp int, dst *float32)",
		"makes 9 taps, sp bytes apart, of n times 16 channels of 16 sums each.")
	z := avx512.v
	n, src, sp, fp, dst, t := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.RDI, reg.RAX
	half := z[31]
	MOVL(U32(0x3f000000), t.As32())
	VPBROADCASTD(t.As32(), half)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("sp"), sp)
	Load(Param("fp"), fp)
	Load(Param("dst"), dst)
	Label("weight")
	MOVQ(src, t)
	for i := range 16 {
		VMOVUPS(Mem{Base: t}, z[i])
		if i < 15 {
			ADDQ(fp, t)
		}
	}
	// back makes three of four.
	back := func(a, b, c, d, t reg.VecPhysical) {
		VADDPS(c, b, t)
		VSUBPS(c, b, b)
		VMULPS(half, t, t)
		VMULPS(half, b, b)
		VADDPS(t, a, a)
		VSUBPS(d, t, c)
	}
	for c := range 4 {
		back(z[c], z[4+c], z[8+c], z[12+c], z[16])
	}
	for r := range 3 {
		v := z[4*r : 4*r+4]
		back(v[0], v[1], v[2], v[3], z[16])
		for _, v := range v[:3] {
			VMOVUPS(v, Mem{Base: dst})
			ADDQ(sp, dst)
		}
	}
	ADDQ(sp, src)
	DECQ(n)
	JNE(LabelRef("weight"))
	VZEROUPPER()
	RET()
}
