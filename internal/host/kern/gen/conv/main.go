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
	convTile9()
	convDots9()
	transpose()
	copyLines()
	gatherLines()
	scatterLines()
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

// convTile writes the kernel of a panel of `rows` channels. It goes through tiles of two vectors of pixels, which may be
// parts of different lines of the image. Step p multiplies the p-th `rows` values of a, packed weights, with the pixels
// that are off[p] after the tile's. The sums stay in registers; they go to the tile's places in c, under a mask if it
// has one, and are added to what is there if acc is not 0.
func convTile(rows int) {
	kernel(fmt.Sprintf("conv32_%d", rows),
		"func(k int, a, b, c *float32, off *int32, ldc, acc int, tiles *int32, n int, masks *[16]int32)",
		fmt.Sprintf("computes %d channels.", rows))
	k, a, b, b2, off := reg.RCX, reg.RSI, reg.RDI, reg.RDX, reg.R8
	tiles, n, masks := reg.R10, reg.R11, reg.R12
	Load(Param("tiles"), tiles)
	Load(Param("n"), n)
	Load(Param("masks"), masks)
	Label("tile")
	field := func(i int, r reg.GPPhysical) { MOVLQSX(Mem{Base: tiles, Disp: 4 * i}, r) }
	Load(Param("k"), k)
	Load(Param("a"), a)
	Load(Param("b"), b)
	Load(Param("off"), off)
	field(0, reg.RAX)
	LEAQ(Mem{Base: b, Index: reg.RAX, Scale: 4}, b)
	field(1, reg.RAX)
	LEAQ(Mem{Base: b, Index: reg.RAX, Scale: 4}, b2)
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
	Load(Param("ldc"), ldc)
	Load(Param("acc"), acc)
	field(2, mask)
	LEAQ(Mem{Base: c, Index: mask, Scale: 4}, c)
	field(3, mask)
	LEAQ(Mem{Base: c, Index: mask, Scale: 4}, c2)
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
	}
	field(4, mask)
	CMPQ(mask, Imm(fullMask))
	JE(LabelRef("full"))
	SHLQ(Imm(6), mask)
	ADDQ(masks, mask)
	VMOVUPS(Mem{Base: mask}, weights[0])
	VMOVUPS(Mem{Base: mask, Disp: 32}, weights[1])
	TESTQ(acc, acc)
	JE(LabelRef("maskedStore"))
	write(true, true)
	JMP(LabelRef("next"))
	Label("maskedStore")
	write(false, true)
	JMP(LabelRef("next"))
	Label("full")
	TESTQ(acc, acc)
	JE(LabelRef("store"))
	write(true, false)
	JMP(LabelRef("next"))
	Label("store")
	write(false, false)
	Label("next")
	ADDQ(Imm(20), tiles)
	DECQ(n)
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// fullMask is the mask of a tile whose 16 lanes all exist: 8 of 0 to 8, and 8 of 0 to 8.
const fullMask = 8*9 + 8

var nine = []reg.GPPhysical{reg.RSI, reg.RDI, reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.RBX}

// ninePlaces makes pointers of the places in off.
func ninePlaces() {
	Load(Param("b"), reg.RCX)
	Load(Param("off"), reg.RDX)
	for i, p := range nine {
		MOVLQSX(Mem{Base: reg.RDX, Disp: 4 * i}, p)
		LEAQ(Mem{Base: reg.RCX, Index: p, Scale: 4}, p)
	}
}

// convTile9 writes the same as convTile for one channel and 9 weights: those of a depthwise convolution, which stay in
// registers.
func convTile9() {
	kernel("conv32_9", "func(a, b, c *float32, off *int32, acc int, tiles *int32, n int, masks *[16]int32)",
		"computes one channel of 9 weights.")
	ninePlaces()
	sums, weights, masks := ymm[9:11], ymm[:9], ymm[11:13]
	Load(Param("a"), reg.RCX)
	for i, w := range weights {
		VBROADCASTSS(Mem{Base: reg.RCX, Disp: 4 * i}, w)
	}
	tiles, c, x, c2 := reg.RDX, reg.R15, reg.RAX, reg.RCX
	Load(Param("tiles"), tiles)
	Label("tile")
	Load(Param("c"), c)
	MOVLQSX(Mem{Base: tiles}, x)
	MOVLQSX(Mem{Base: tiles, Disp: 4}, c2)
	ADDQ(x, c2)
	for i, p := range nine {
		for j, at := range []reg.GPPhysical{x, c2} {
			m := Mem{Base: p, Index: at, Scale: 4}
			if i == 0 {
				VMULPS(m, weights[i], sums[j])
			} else {
				VFMADD231PS(m, weights[i], sums[j])
			}
		}
	}
	MOVLQSX(Mem{Base: tiles, Disp: 8}, x)
	MOVLQSX(Mem{Base: tiles, Disp: 12}, c2)
	LEAQ(Mem{Base: c, Index: x, Scale: 4}, c)
	LEAQ(Mem{Base: c, Index: c2, Scale: 4}, c2)
	places := []reg.GPPhysical{c, c2}
	MOVLQSX(Mem{Base: tiles, Disp: 16}, x)
	CMPQ(x, Imm(fullMask))
	JE(LabelRef("full"))
	loadMasks(x, masks)
	CMPQ(NewParamAddr("acc", 32), Imm(0))
	JE(LabelRef("maskedStore"))
	for j, p := range places {
		VMASKMOVPS(Mem{Base: p}, masks[j], ymm[13])
		VADDPS(ymm[13], sums[j], sums[j])
	}
	Label("maskedStore")
	for j, p := range places {
		VMASKMOVPS(sums[j], masks[j], Mem{Base: p})
	}
	JMP(LabelRef("next"))
	Label("full")
	CMPQ(NewParamAddr("acc", 32), Imm(0))
	JE(LabelRef("store"))
	for j, p := range places {
		VADDPS(Mem{Base: p}, sums[j], sums[j])
	}
	Label("store")
	for j, p := range places {
		VMOVUPS(sums[j], Mem{Base: p})
	}
	Label("next")
	ADDQ(Imm(20), tiles)
	DECQ(NewParamAddr("n", 48))
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

func loadMasks(index reg.GPPhysical, masks []reg.VecPhysical) {
	SHLQ(Imm(6), index)
	ADDQ(NewParamAddr("masks", 56), index)
	VMOVUPS(Mem{Base: index}, masks[0])
	VMOVUPS(Mem{Base: index, Disp: 32}, masks[1])
}

// convDots9 writes the kernel of a depthwise convolution's weight gradient: to each of 9 vectors of sums it adds those
// over all tiles of the image's pixels, at the places in off, times the result's.
func convDots9() {
	kernel("convDots32_9", "func(b, c *float32, off *int32, sums *float32, tiles *int32, n, unused int, masks *[16]int32)",
		"computes the gradients of 9 weights.")
	ninePlaces()
	sums, grads, masks, t := ymm[:9], ymm[9:11], ymm[11:13], ymm[13]
	for _, s := range sums {
		VXORPS(s, s, s)
	}
	tiles, c, x, x2 := reg.RDX, reg.R15, reg.RAX, reg.RCX
	Load(Param("tiles"), tiles)
	Label("tile")
	Load(Param("c"), c)
	MOVLQSX(Mem{Base: tiles, Disp: 8}, x)
	LEAQ(Mem{Base: c, Index: x, Scale: 4}, c)
	MOVLQSX(Mem{Base: tiles, Disp: 12}, x2)
	MOVLQSX(Mem{Base: tiles}, x)
	second := Mem{Base: c, Index: x2, Scale: 4}
	CMPL(Mem{Base: tiles, Disp: 16}, Imm(fullMask))
	JE(LabelRef("full"))
	MOVLQSX(Mem{Base: tiles, Disp: 16}, x)
	loadMasks(x, masks)
	VMASKMOVPS(Mem{Base: c}, masks[0], grads[0])
	VMASKMOVPS(second, masks[1], grads[1])
	MOVLQSX(Mem{Base: tiles}, x)
	MOVLQSX(Mem{Base: tiles, Disp: 4}, x2)
	ADDQ(x, x2)
	for i, p := range nine {
		for j, at := range []reg.GPPhysical{x, x2} {
			VMASKMOVPS(Mem{Base: p, Index: at, Scale: 4}, masks[j], t)
			VFMADD231PS(t, grads[j], sums[i])
		}
	}
	JMP(LabelRef("next"))
	Label("full")
	VMOVUPS(Mem{Base: c}, grads[0])
	VMOVUPS(second, grads[1])
	MOVLQSX(Mem{Base: tiles, Disp: 4}, x2)
	ADDQ(x, x2)
	for i, p := range nine {
		for j, at := range []reg.GPPhysical{x, x2} {
			VFMADD231PS(Mem{Base: p, Index: at, Scale: 4}, grads[j], sums[i])
		}
	}
	Label("next")
	ADDQ(Imm(20), tiles)
	DECQ(NewParamAddr("n", 40))
	JNE(LabelRef("tile"))
	Load(Param("sums"), c)
	for i, s := range sums {
		VADDPS(Mem{Base: c, Disp: 32 * i}, s, s)
		VMOVUPS(s, Mem{Base: c, Disp: 32 * i})
	}
	VZEROUPPER()
	RET()
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
