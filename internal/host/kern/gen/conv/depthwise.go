package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
func (s set) convTile9() {
	s.kernel("convNine", "func(a, b, c *float32, off *int32, acc int, tiles *int32, n int)", "computes one channel of 9 weights.")
	ninePlaces()
	sums, weights, masks := s.v[9:11], s.v[:9], s.v[11:13]
	Load(Param("a"), reg.RCX)
	for i, w := range weights {
		VBROADCASTSS(Mem{Base: reg.RCX, Disp: 4 * i}, w)
	}
	tiles, c, x, c2 := reg.RDX, reg.R15, reg.RAX, reg.RCX
	Load(Param("tiles"), tiles)
	Label("tile")
	Load(Param("c"), c)
	field(tiles, 0, x)
	field(tiles, 1, c2)
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
	field(tiles, 2, x)
	field(tiles, 3, c2)
	LEAQ(Mem{Base: c, Index: x, Scale: 4}, c)
	LEAQ(Mem{Base: c, Index: c2, Scale: 4}, c2)
	places := []reg.GPPhysical{c, c2}
	lanes, acc := tileLanes, NewParamAddr("acc", 32)
	lanes.Base = tiles
	CMPL(lanes, s.full())
	JE(LabelRef("full"))
	s.masks(lanes, masks, x, reg.R14)
	CMPQ(acc, Imm(0))
	JE(LabelRef("maskedStore"))
	for j, p := range places {
		s.load(Mem{Base: p}, masks, j, s.v[13])
		VADDPS(s.v[13], sums[j], sums[j])
	}
	Label("maskedStore")
	for j, p := range places {
		s.store(sums[j], masks, j, Mem{Base: p})
	}
	JMP(LabelRef("next"))
	Label("full")
	CMPQ(acc, Imm(0))
	JE(LabelRef("store"))
	for j, p := range places {
		VADDPS(Mem{Base: p}, sums[j], sums[j])
	}
	Label("store")
	for j, p := range places {
		VMOVUPS(sums[j], Mem{Base: p})
	}
	Label("next")
	ADDQ(tileSize, tiles)
	DECQ(NewParamAddr("n", 48))
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// dots9 writes the kernel of a depthwise convolution's weight gradient: to each of 9 vectors of sums it adds those
// over all tiles of the image's pixels, at the places in off, times the result's.
func (s set) dots9() {
	s.kernel("convDots9", "func(b, c *float32, off *int32, sums *float32, tiles *int32, n int)", "computes the gradients of 9 weights.")
	ninePlaces()
	sums, grads, masks, t := s.v[:9], s.v[9:11], s.v[11:13], s.v[13]
	s.clear(sums)
	tiles, c, x, x2 := reg.RDX, reg.R15, reg.RAX, reg.RCX
	Load(Param("tiles"), tiles)
	Label("tile")
	Load(Param("c"), c)
	field(tiles, 2, x)
	LEAQ(Mem{Base: c, Index: x, Scale: 4}, c)
	field(tiles, 3, x2)
	first, second := Mem{Base: c}, Mem{Base: c, Index: x2, Scale: 4}
	lanes := tileLanes
	lanes.Base = tiles
	CMPL(lanes, s.full())
	JE(LabelRef("full"))
	s.masks(lanes, masks, x, reg.R14)
	s.load(first, masks, 0, grads[0])
	s.load(second, masks, 1, grads[1])
	field(tiles, 0, x)
	field(tiles, 1, x2)
	ADDQ(x, x2)
	for i, p := range nine {
		for j, at := range []reg.GPPhysical{x, x2} {
			s.load(Mem{Base: p, Index: at, Scale: 4}, masks, j, t)
			VFMADD231PS(t, grads[j], sums[i])
		}
	}
	JMP(LabelRef("next"))
	Label("full")
	VMOVUPS(first, grads[0])
	VMOVUPS(second, grads[1])
	field(tiles, 0, x)
	field(tiles, 1, x2)
	ADDQ(x, x2)
	for i, p := range nine {
		for j, at := range []reg.GPPhysical{x, x2} {
			VFMADD231PS(Mem{Base: p, Index: at, Scale: 4}, grads[j], sums[i])
		}
	}
	Label("next")
	ADDQ(tileSize, tiles)
	DECQ(NewParamAddr("n", 40))
	JNE(LabelRef("tile"))
	Load(Param("sums"), c)
	for i, v := range sums {
		m := Mem{Base: c, Disp: s.bytes() * i}
		VADDPS(m, v, v)
		VMOVUPS(v, m)
	}
	VZEROUPPER()
	RET()
}
