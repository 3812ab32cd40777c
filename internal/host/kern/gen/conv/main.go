// Command conv writes the assembly of the kernels of convolution.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A set of instructions: its vectors of float32 and how it leaves lanes out.
type set struct {
	name  string
	lanes int
	v     []reg.VecPhysical
}

var (
	avx2 = set{"x8", 8, []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}}
	avx512 = set{"x16", 16, []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
		reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20,
		reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}}

	ymm    = avx2.v
	ones   Mem // 8 lanes, and 8 without
	masksK = []reg.OpmaskPhysical{reg.K1, reg.K2}
)

func main() {
	ConstraintExpr("amd64,!race")
	ones = GLOBL("convLanes", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32([]uint32{0xffffffff, 0}[i/8]))
	}
	for n := 1; n <= 6; n++ {
		avx2.convTile(n)
	}
	for n := 1; n <= 14; n++ {
		avx512.convTile(n)
	}
	for n := 1; n <= 6; n++ {
		avx2.weightTile(n, 2)
	}
	for vectors, most := range []int{1: 11, 2: 11, 3: 9, 4: 6} {
		for n := 1; n <= most; n++ {
			avx512.weightTile(n, vectors)
		}
	}
	for _, s := range []set{avx2, avx512} {
		s.convTile9()
		s.dots9()
	}
	transpose()
	copyLines()
	gatherLines()
	scatterLines()
	wideLines()
	convPack()
	gatherWeights()
	packNines()
	untwist()
	planes()
	winograd()
	winograd4()
	Generate()
}

func kernel(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

func (s set) kernel(name, signature, doc string) { kernel(name+s.name, signature, doc) }

func (s set) bytes() int { return 4 * s.lanes }

// masks makes the masks of the first n lanes of two vectors, with n in 16 bits each at m. AVX2 has them in v.
func (s set) masks(m Mem, v []reg.VecPhysical, t, t2 reg.GPPhysical) {
	for i := range 2 {
		MOVWQZX(m.Offset(2*i), t)
		if s.lanes == 16 {
			MOVQ(I32(-1), t2)
			BZHIQ(t, t2, t2)
			KMOVW(t2.As32(), masksK[i])
			continue
		}
		NEGQ(t)
		LEAQ(ones, t2)
		VMOVUPS(Mem{Base: t2, Index: t, Scale: 4, Disp: 32}, v[i])
	}
}

// load is of the lanes of mask i; others become zero.
func (s set) load(m Mem, v []reg.VecPhysical, i int, dst reg.VecPhysical) {
	if s.lanes == 16 {
		VMOVUPS_Z(m, masksK[i], dst)
	} else {
		VMASKMOVPS(m, v[i], dst)
	}
}

func (s set) store(src reg.VecPhysical, v []reg.VecPhysical, i int, m Mem) {
	if s.lanes == 16 {
		VMOVUPS(src, masksK[i], m)
	} else {
		VMASKMOVPS(src, v[i], m)
	}
}

func (s set) clear(v []reg.VecPhysical) {
	for _, r := range v {
		if s.lanes == 16 {
			VPXORD(r, r, r)
		} else {
			VXORPS(r, r, r)
		}
	}
}

// full is how a tile says that both its vectors have all lanes.
func (s set) full() Constant { return U32(uint32(s.lanes<<16 | s.lanes)) }

// unrolled runs k steps, several at a time while there are as many. step may not move a pointer: advance does, n steps on.
func unrolled(k reg.GPPhysical, times int, step func(u int), advance func(n int)) {
	SUBQ(Imm(uint64(times)), k)
	JL(LabelRef("tail"))
	Label("loop")
	for u := range times {
		step(u)
	}
	advance(times)
	SUBQ(Imm(uint64(times)), k)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(uint64(times)), k)
	JE(LabelRef("done"))
	Label("one")
	step(0)
	advance(1)
	DECQ(k)
	JNE(LabelRef("one"))
	Label("done")
}

// A tile is two vectors of pixels: places in the source and the result, the second after the first, and numbers of lanes.
var tileSize, tileLanes = Imm(20), Mem{Disp: 16}

func field(tiles reg.GPPhysical, i int, r reg.GPPhysical) { MOVLQSX(Mem{Base: tiles, Disp: 4 * i}, r) }

// convTile writes the kernel of a panel of `rows` channels. It goes through tiles of two vectors of pixels, which may be
// parts of different lines of the image. Step p multiplies the p-th `rows` values of a, packed weights, with the pixels
// that are off[p] after the tile's. The sums stay in registers; they go to the tile's places in c, those lanes that it
// has, and are added to what is there if acc is not 0.
func (s set) convTile(rows int) {
	s.kernel(fmt.Sprintf("conv%d", rows), "func(k int, a, b, c *float32, off *int32, ldc, acc int, tiles *int32, n int)",
		fmt.Sprintf("computes %d channels.", rows))
	k, a, b, b2, off := reg.RCX, reg.RSI, reg.RDI, reg.RDX, reg.R8
	tiles, n := reg.R10, reg.R11
	Load(Param("tiles"), tiles)
	Load(Param("n"), n)
	Label("tile")
	Load(Param("k"), k)
	Load(Param("a"), a)
	Load(Param("b"), b)
	Load(Param("off"), off)
	field(tiles, 0, reg.RAX)
	LEAQ(Mem{Base: b, Index: reg.RAX, Scale: 4}, b)
	field(tiles, 1, reg.RAX)
	LEAQ(Mem{Base: b, Index: reg.RAX, Scale: 4}, b2)
	last := len(s.v)
	sums, pixels, weights := s.v[:2*rows], s.v[last-4:last-2], s.v[last-2:]
	s.clear(sums)
	unrolled(k, 4, func(u int) {
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
		ADDQ(U32(uint32(4*n*rows)), a)
		ADDQ(Imm(uint64(4*n)), off)
	})
	c, c2, ldc, acc, t := reg.RAX, reg.R9, reg.RBX, reg.RCX, reg.RDX
	Load(Param("c"), c)
	Load(Param("ldc"), ldc)
	Load(Param("acc"), acc)
	field(tiles, 2, t)
	LEAQ(Mem{Base: c, Index: t, Scale: 4}, c)
	field(tiles, 3, t)
	LEAQ(Mem{Base: c, Index: t, Scale: 4}, c2)
	write := func(add, masked bool) {
		for i, sum := range sums {
			m := Mem{Base: []reg.GPPhysical{c, c2}[i%2]}
			switch {
			case add && masked:
				s.load(m, weights, i%2, pixels[i%2])
				VADDPS(pixels[i%2], sum, sum)
			case add:
				VADDPS(m, sum, sum)
			}
			if masked {
				s.store(sum, weights, i%2, m)
			} else {
				VMOVUPS(sum, m)
			}
			ADDQ(ldc, m.Base)
		}
	}
	lanes := tileLanes
	lanes.Base = tiles
	CMPL(lanes, s.full())
	JE(LabelRef("full"))
	s.masks(lanes, weights, t, reg.RSI)
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
	ADDQ(tileSize, tiles)
	DECQ(n)
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// weightTile writes the kernel of a tile of the weight gradient: `taps` values of the image, at the places in off, times
// vectors of output channels, summed over lines times width pixels and added to c, where the channels follow a tap. The
// image's lines are pitch bytes apart; b holds the channels of each pixel.
func (s set) weightTile(taps, vectors int) {
	s.kernel(fmt.Sprintf("convWeights%dx%d", taps, vectors),
		"func(lines, width int, x *float32, pitch int, off *int32, b, c *float32)",
		fmt.Sprintf("computes %d taps of %d channels.", taps, vectors*s.lanes))
	at, b, n := reg.RAX, reg.RBX, reg.RCX
	p := []reg.GPPhysical{reg.RDX, reg.RSI, reg.RDI, reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14, reg.R15}[:taps]
	Load(Param("x"), n)
	Load(Param("off"), b)
	for i := range p {
		MOVLQSX(Mem{Base: b, Disp: 4 * i}, p[i])
		LEAQ(Mem{Base: n, Index: p[i], Scale: 4}, p[i])
	}
	Load(Param("b"), b)
	XORQ(at, at)
	last := len(s.v)
	sums, pixels, channels := s.v[:vectors*taps], s.v[last-2:], s.v[last-2-vectors:last-2]
	if len(sums)+len(channels)+len(pixels) > last {
		panic("too few registers")
	}
	s.clear(sums)
	Label("line")
	Load(Param("width"), n)
	unrolled(n, 2, func(u int) {
		for j := range channels {
			VMOVUPS(Mem{Base: b, Disp: s.bytes() * (vectors*u + j)}, channels[j])
		}
		for i := range p {
			VBROADCASTSS(Mem{Base: p[i], Index: at, Scale: 1, Disp: 4 * u}, pixels[i%2])
			for j := range channels {
				VFMADD231PS(channels[j], pixels[i%2], sums[vectors*i+j])
			}
		}
	}, func(n int) {
		ADDQ(U32(uint32(s.bytes()*vectors*n)), b)
		ADDQ(Imm(uint64(4*n)), at)
	})
	// to the next line, from the end of this one
	ADDQ(NewParamAddr("pitch", 24), at)
	MOVQ(NewParamAddr("width", 8), n)
	SHLQ(Imm(2), n)
	SUBQ(n, at)
	DECQ(NewParamAddr("lines", 0))
	JNE(LabelRef("line"))
	Load(Param("c"), reg.RAX)
	for i, v := range sums {
		m := Mem{Base: reg.RAX, Disp: s.bytes() * i}
		VADDPS(m, v, v)
		VMOVUPS(v, m)
	}
	VZEROUPPER()
	RET()
}
