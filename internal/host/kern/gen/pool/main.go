// Command pool writes the assembly of max pooling.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!race")
	// One of each window's elements, for eight windows side by side, or 16.
	maxPool("maxPool1", 8, 1)
	maxPool("maxPool2", 8, 2)
	maxPool("maxPool1z", 16, 1)
	maxPool("maxPool2z", 16, 2)
	maxPoolBack("maxPoolBack2", 2)
	maxPoolBack("maxPoolBack3", 3)
	Generate()
}

// maxPool writes the maxima of blocks of so many windows, which are stride elements apart, and where they are.
func maxPool(name string, windows, stride int) {
	TEXT(name, NOSPLIT, "func(blocks int, dst *float32, place *uint8, x *float32, width, rows, kernel, first int)")
	Pragma("noescape")
	blocks, dst, place, x := reg.RCX, reg.RDI, reg.RSI, reg.RDX
	width, rows, kernel := reg.R8, reg.R9, reg.R10
	Load(Param("blocks"), blocks)
	Load(Param("dst"), dst)
	Load(Param("place"), place)
	Load(Param("x"), x)
	Load(Param("width"), width)
	SHLQ(Imm(2), width)
	Load(Param("rows"), rows)
	Load(Param("kernel"), kernel)
	Load(Param("first"), reg.RAX)
	m := maximum{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y15}
	first, least := reg.VecPhysical(reg.Y14), reg.VecPhysical(reg.Y13)
	if windows == 16 {
		m = maximum{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z15}
		first, least = reg.Z14, reg.Z13
		MOVL(U32(1), reg.EBX)
		VPBROADCASTD(reg.EBX, m.one)
		MOVL(U32(0xff800000), reg.EBX) // -∞
		VPBROADCASTD(reg.EBX, least)
		VPBROADCASTD(reg.EAX, first)
		if stride == 2 {
			VMOVDQU32(sixteen(name+"Even", func(i int) int { return 2 * i }), m.spare)
		}
	} else {
		VMOVD(reg.EAX, first.AsX())
		VPBROADCASTD(first.AsX(), first)
		VPCMPEQD(m.one, m.one, m.one)
		VPSLLD(Imm(23), m.one, least)
		VPSRLD(Imm(31), m.one, m.one)
	}

	Label("block")
	VMOVAPS(least, m.best)
	VMOVAPS(first, m.at)
	VMOVAPS(first, m.tap)
	row, r, from, c := reg.R11, reg.R12, reg.RAX, reg.RBX
	MOVQ(x, row)
	MOVQ(rows, r)
	Label("row")
	MOVQ(row, from)
	MOVQ(kernel, c)
	Label("column")
	if windows == 16 {
		m.take16(from, stride)
	} else {
		m.take8(from, stride)
	}
	ADDQ(Imm(4), from)
	DECQ(c)
	JNZ(LabelRef("column"))
	ADDQ(width, row)
	DECQ(r)
	JNZ(LabelRef("row"))
	VMOVUPS(m.best, Mem{Base: dst})
	if windows == 16 {
		VPMOVDB(m.at, Mem{Base: place})
	} else {
		VEXTRACTI128(Imm(1), m.at, m.v.AsX())
		VPACKUSDW(m.v.AsX(), m.at.AsX(), m.at.AsX())
		VPACKUSWB(m.at.AsX(), m.at.AsX(), m.at.AsX())
		VMOVQ(m.at.AsX(), Mem{Base: place})
	}
	ADDQ(U32(uint32(4*stride*windows)), x)
	ADDQ(Imm(uint64(4*windows)), dst)
	ADDQ(Imm(uint64(windows)), place)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// maximum has the greatest element of each window so far and where that is, the place at hand, its elements, and two more
// registers.
type maximum struct{ best, at, tap, v, spare, nan, one reg.VecPhysical }

// take8 looks at the elements from x on: those that are greater, or no numbers, are the best.
func (m *maximum) take8(x reg.GPPhysical, stride int) {
	VMOVUPS(Mem{Base: x}, m.v)
	if stride == 2 { // every second one of 16
		VMOVUPS(Mem{Base: x, Disp: 32}, m.spare)
		VSHUFPS(Imm(0x88), m.spare, m.v, m.v)
		VPERMQ(Imm(0xd8), m.v, m.v)
	}
	VCMPPS(Imm(greater), m.best, m.v, m.spare)
	VCMPPS(Imm(unordered), m.v, m.v, m.nan)
	VORPS(m.nan, m.spare, m.spare)
	VBLENDVPS(m.spare, m.v, m.best, m.best)
	VBLENDVPS(m.spare, m.tap, m.at, m.at)
	VPADDD(m.one, m.tap, m.tap)
}

// take16 is take8 for twice as many; spare has the places of every second one of 32.
func (m *maximum) take16(x reg.GPPhysical, stride int) {
	VMOVUPS(Mem{Base: x}, m.v)
	if stride == 2 {
		VPERMT2PS(Mem{Base: x, Disp: 64}, m.spare, m.v)
	}
	VCMPPS(Imm(greater), m.best, m.v, reg.K1)
	VCMPPS(Imm(unordered), m.v, m.v, reg.K2)
	KORW(reg.K1, reg.K2, reg.K1)
	VMOVAPS(m.v, reg.K1, m.best)
	VMOVDQA32(m.tap, reg.K1, m.at)
	VPADDD(m.one, m.tap, m.tap)
}

const greater, unordered = 30, 3 // of comparisons
