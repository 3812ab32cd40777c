// Command conv writes the assembly of the kernels of convolution.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var ymm = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}

func main() {
	ConstraintExpr("amd64,!race")
	for n := 1; n <= 6; n++ {
		convTile(n)
	}
	for n := 1; n <= 6; n++ {
		convWeightTile(n)
	}
	Generate()
}

func kernel(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

// unrolled runs k steps, four at a time while there are as many. step may not move a pointer: advance does, n steps on.
func unrolled(k reg.GPPhysical, step func(u int), advance func(n int)) {
	SUBQ(Imm(4), k)
	JL(LabelRef("tail"))
	Label("loop")
	for u := range 4 {
		step(u)
	}
	advance(4)
	SUBQ(Imm(4), k)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(4), k)
	JE(LabelRef("done"))
	Label("one")
	step(0)
	advance(1)
	DECQ(k)
	JNE(LabelRef("one"))
	Label("done")
}

// convTile writes the kernel of a tile of the output: `rows` channels times two vectors of pixels, which may be parts
// of different lines of the image. Step p multiplies the p-th `rows` values of a, packed weights, with the pixels
// at b+off[p] and b2 bytes after that. The sums stay in registers; they go to c and c2 bytes after it, under a mask if
// it is not nil, and are added to what is there if acc is not 0.
func convTile(rows int) {
	kernel(fmt.Sprintf("conv32_%d", rows),
		"func(k int, a, b, c *float32, off *int32, b2, c2, ldc, acc int, mask *[16]int32)",
		fmt.Sprintf("computes %d channels of 16 pixels.", rows))
	k, a, b, b2, off := reg.RCX, reg.RSI, reg.RDI, reg.RDX, reg.R8
	Load(Param("k"), k)
	Load(Param("a"), a)
	Load(Param("b"), b)
	Load(Param("b2"), b2)
	Load(Param("off"), off)
	ADDQ(b, b2)
	sums, pixels, weights := ymm[:2*rows], ymm[12:14], ymm[14:]
	for _, s := range sums {
		VXORPS(s, s, s)
	}
	unrolled(k, func(u int) {
		MOVLQSX(Mem{Base: off, Disp: 4 * u}, reg.RAX)
		VMOVUPS(Mem{Base: b, Index: reg.RAX, Scale: 4}, pixels[0])
		VMOVUPS(Mem{Base: b2, Index: reg.RAX, Scale: 4}, pixels[1])
		for i := range rows {
			w := weights[i%2]
			VBROADCASTSS(Mem{Base: a, Disp: 4 * (u*rows + i)}, w)
			VFMADD231PS(pixels[0], w, sums[2*i])
			VFMADD231PS(pixels[1], w, sums[2*i+1])
		}
	}, func(n int) {
		ADDQ(Imm(uint64(4*n*rows)), a)
		ADDQ(Imm(uint64(4*n)), off)
	})
	c, c2, ldc, acc, mask := reg.RAX, reg.R9, reg.RBX, reg.RCX, reg.RDX
	Load(Param("c"), c)
	Load(Param("c2"), c2)
	Load(Param("ldc"), ldc)
	Load(Param("acc"), acc)
	Load(Param("mask"), mask)
	ADDQ(c, c2)
	write := func(add, masked bool) {
		for i, s := range sums {
			m := Mem{Base: []reg.GPPhysical{c, c2}[i%2]}
			switch {
			case add && masked:
				VMASKMOVPS(m, weights[i%2], pixels[i%2])
				VADDPS(pixels[i%2], s, s)
			case add:
				VADDPS(m, s, s)
			}
			if masked {
				VMASKMOVPS(s, weights[i%2], m)
			} else {
				VMOVUPS(s, m)
			}
			ADDQ(ldc, m.Base)
		}
		VZEROUPPER()
		RET()
	}
	TESTQ(mask, mask)
	JE(LabelRef("full"))
	VMOVUPS(Mem{Base: mask}, weights[0])
	VMOVUPS(Mem{Base: mask, Disp: 32}, weights[1])
	TESTQ(acc, acc)
	JE(LabelRef("maskedStore"))
	write(true, true)
	Label("maskedStore")
	write(false, true)
	Label("full")
	TESTQ(acc, acc)
	JE(LabelRef("store"))
	write(true, false)
	Label("store")
	write(false, false)
}

// convWeightTile writes the kernel of a tile of the weight gradient: `taps` values of the image, at the places in off,
// times 16 output channels, summed over lines times width pixels and added to c, where 16 channels follow a tap. The
// image's lines are pitch bytes apart; b holds 16 channels a pixel.
func convWeightTile(taps int) {
	kernel(fmt.Sprintf("convWeights32_%d", taps),
		"func(lines, width int, x *float32, pitch int, off *int32, b, c *float32)",
		fmt.Sprintf("computes %d taps of 16 channels.", taps))
	lines, width, x, pitch, b, n := reg.RBX, reg.RCX, reg.RSI, reg.RDX, reg.RDI, reg.RAX
	p := []reg.GPPhysical{reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13}[:taps]
	Load(Param("lines"), lines)
	Load(Param("width"), width)
	Load(Param("x"), x)
	Load(Param("pitch"), pitch)
	Load(Param("b"), b)
	Load(Param("off"), n)
	for i := range p {
		MOVLQSX(Mem{Base: n, Disp: 4 * i}, p[i])
		LEAQ(Mem{Base: x, Index: p[i], Scale: 4}, p[i])
	}
	MOVQ(width, n)
	SHLQ(Imm(2), n) // the pointers have moved that far at a line's end
	SUBQ(n, pitch)
	sums, channels, pixels := ymm[:2*taps], ymm[12:14], ymm[14:]
	for _, s := range sums {
		VXORPS(s, s, s)
	}
	Label("line")
	MOVQ(width, n)
	unrolled(n, func(u int) {
		VMOVUPS(Mem{Base: b, Disp: 64 * u}, channels[0])
		VMOVUPS(Mem{Base: b, Disp: 64*u + 32}, channels[1])
		for i := range p {
			VBROADCASTSS(Mem{Base: p[i], Disp: 4 * u}, pixels[i%2])
			VFMADD231PS(channels[0], pixels[i%2], sums[2*i])
			VFMADD231PS(channels[1], pixels[i%2], sums[2*i+1])
		}
	}, func(n int) {
		ADDQ(U32(uint32(64*n)), b)
		for i := range p {
			ADDQ(Imm(uint64(4*n)), p[i])
		}
	})
	for i := range p {
		ADDQ(pitch, p[i])
	}
	DECQ(lines)
	JNE(LabelRef("line"))
	Load(Param("c"), reg.RAX)
	for i, s := range sums {
		m := Mem{Base: reg.RAX, Disp: 32 * i}
		VADDPS(m, s, s)
		VMOVUPS(s, m)
	}
	VZEROUPPER()
	RET()
}
