// Command pool writes the assembly of max pooling.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!race")
	// One of each window's elements, for eight windows side by side.
	maxPool("maxPool1", 32, func(x reg.GPPhysical, v reg.VecPhysical) { VMOVUPS(Mem{Base: x}, v) })
	maxPool("maxPool2", 64, func(x reg.GPPhysical, v reg.VecPhysical) { // every second one of 16
		VMOVUPS(Mem{Base: x}, v)
		VMOVUPS(Mem{Base: x, Disp: 32}, reg.Y7)
		VSHUFPS(Imm(0x88), reg.Y7, v, v)
		VPERMQ(Imm(0xd8), v, v)
	})
	maxPoolBack("maxPoolBack2", 2)
	maxPoolBack("maxPoolBack3", 3)
	Generate()
}

// maxPool writes the maxima of blocks of eight windows, which are step bytes apart, and where they are.
func maxPool(name string, step uint64, load func(x reg.GPPhysical, v reg.VecPhysical)) {
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
	best, at, tap, v, wins, nan := reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5
	one, first, least := reg.Y15, reg.Y14, reg.Y13
	VMOVD(reg.EAX, first.AsX())
	VPBROADCASTD(first.AsX(), first)
	VPCMPEQD(one, one, one)
	VPSLLD(Imm(23), one, least) // -∞
	VPSRLD(Imm(31), one, one)

	Label("block")
	VMOVAPS(least, best)
	VMOVDQA(first, at)
	VMOVDQA(first, tap)
	row, r, from, c := reg.R11, reg.R12, reg.RAX, reg.RBX
	MOVQ(x, row)
	MOVQ(rows, r)
	Label("row")
	MOVQ(row, from)
	MOVQ(kernel, c)
	Label("column")
	load(from, v)
	VCMPPS(Imm(30), best, v, wins) // greater
	VCMPPS(Imm(3), v, v, nan)
	VORPS(nan, wins, wins)
	VBLENDVPS(wins, v, best, best)
	VBLENDVPS(wins, tap, at, at)
	VPADDD(one, tap, tap)
	ADDQ(Imm(4), from)
	DECQ(c)
	JNZ(LabelRef("column"))
	ADDQ(width, row)
	DECQ(r)
	JNZ(LabelRef("row"))
	VMOVUPS(best, Mem{Base: dst})
	VEXTRACTI128(Imm(1), at, v.AsX())
	VPACKUSDW(v.AsX(), at.AsX(), at.AsX())
	VPACKUSWB(at.AsX(), at.AsX(), at.AsX())
	VMOVQ(at.AsX(), Mem{Base: place})
	ADDQ(U32(step), x)
	ADDQ(Imm(32), dst)
	ADDQ(Imm(8), place)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}
