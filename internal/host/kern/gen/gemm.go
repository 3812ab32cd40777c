package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A variant is a width in vectors; a masked one has a last vector of which only some lanes exist.
type variant struct {
	vectors int
	masked  bool
}

// gemm writes c = a·b + d for mr rows and one or two vectors of columns, where d may be nil, c itself, or a row of
// biases (with a distance of 0 between rows). Any strides, in bytes: packed panels need no kernel of their own,
// since the additions of the addresses are free beside the arithmetic. Twelve accumulators keep both FMA units busy.
func gemm(t elem, mr int, v variant) {
	name := fmt.Sprintf("gemm%s%dx%d", t.name, mr, v.vectors)
	if v.masked {
		name += "m"
	}
	TEXT(name, NOSPLIT, fmt.Sprintf("func(k int, a *%[1]s, ars, acs int, b *%[1]s, bs int, c *%[1]s, ldc int, d *%[1]s, ldd int, mask *byte)", t.goType))
	Pragma("noescape")
	k, a0, a3, ars, acs, b, bs := reg.RCX, reg.RSI, reg.R8, reg.R12, reg.R13, reg.RDI, reg.RDX
	Load(Param("k"), k)
	Load(Param("a"), a0)
	Load(Param("ars"), ars)
	Load(Param("acs"), acs)
	Load(Param("b"), b)
	Load(Param("bs"), bs)
	if mr > 3 {
		LEAQ(Mem{Base: a0, Index: ars, Scale: 2}, a3)
		ADDQ(ars, a3)
	}
	acc := func(i, j int) reg.VecPhysical { return ymm[i*v.vectors+j] }
	bv, temps := ymm[12:12+v.vectors], ymm[14:]
	mask := ymm[15]
	if v.masked {
		temps = ymm[14:15]
		Load(Param("mask"), reg.RAX)
		VMOVUPS(Mem{Base: reg.RAX}, mask)
	}
	last := func(j int) bool { return v.masked && j == v.vectors-1 }
	for i := range mr * v.vectors {
		VXORPS(ymm[i], ymm[i], ymm[i])
	}
	each(k, 4, func() {
		for j := range bv {
			if m := (Mem{Base: b, Disp: j * lanes}); last(j) {
				t.maskLoad(m, mask, bv[j])
			} else {
				t.store(m, bv[j])
			}
		}
		for i := range mr {
			x := temps[i%len(temps)]
			t.broadcast(at(a0, a3, ars, i), x)
			for j := range bv {
				t.fma(bv[j], x, acc(i, j))
			}
		}
		ADDQ(bs, b)
		ADDQ(acs, a0)
		if mr > 3 {
			ADDQ(acs, a3)
		}
	})
	c, ldc, d, ldd := reg.RAX, reg.RBX, reg.R9, reg.R10
	Load(Param("c"), c)
	Load(Param("ldc"), ldc)
	Load(Param("d"), d)
	Load(Param("ldd"), ldd)
	TESTQ(d, d)
	JE(LabelRef("store"))
	for i := range mr {
		for j := range bv {
			if m := (Mem{Base: d, Disp: j * lanes}); last(j) {
				t.maskLoad(m, mask, bv[j])
				t.add(bv[j], acc(i, j), acc(i, j))
			} else {
				t.add(m, acc(i, j), acc(i, j))
			}
		}
		ADDQ(ldd, d)
	}
	Label("store")
	for i := range mr {
		for j := range bv {
			if m := (Mem{Base: c, Disp: j * lanes}); last(j) {
				t.maskLoad(acc(i, j), mask, m)
			} else {
				t.store(acc(i, j), m)
			}
		}
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
}

// transpose writes dst[p][i] = src[i][p] for 8 rows i, of which rows exist, and blocks times 8 columns p. It stores
// all 8 lanes of every dst[p]: those of rows that do not exist, to be overwritten by dst[p+1], hold anything.
func transpose() {
	TEXT("transposeF32", NOSPLIT, "func(blocks int, src *float32, ld, rows int, dst *float32, dld int)")
	Pragma("noescape")
	n, src, ld, rows, dst, dld, row := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.RDI, reg.R8, reg.R9
	Load(Param("blocks"), n)
	Load(Param("src"), src)
	Load(Param("ld"), ld)
	Load(Param("rows"), rows)
	Load(Param("dst"), dst)
	Load(Param("dld"), dld)
	x, y := ymm[:8], ymm[8:]
	Label("block")
	MOVQ(src, row)
	for i := range 8 {
		if i > 0 {
			CMPQ(rows, Imm(uint64(i)))
			JLE(LabelRef("loaded"))
		}
		VMOVUPS(Mem{Base: row}, x[i])
		ADDQ(ld, row)
	}
	Label("loaded")
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(x[i+1], x[i], y[i])
		VUNPCKHPS(x[i+1], x[i], y[i+1])
	}
	for i := 0; i < 8; i += 4 { // of rows i … i+3: columns 0 and 4, 1 and 5, 2 and 6, 3 and 7
		VUNPCKLPD(y[i+2], y[i], x[i])
		VUNPCKHPD(y[i+2], y[i], x[i+1])
		VUNPCKLPD(y[i+3], y[i+1], x[i+2])
		VUNPCKHPD(y[i+3], y[i+1], x[i+3])
	}
	for i := range 4 {
		VPERM2F128(Imm(0x20), x[i+4], x[i], y[i])
		VPERM2F128(Imm(0x31), x[i+4], x[i], y[i+4])
	}
	for i := range 8 {
		VMOVUPS(y[i], Mem{Base: dst})
		ADDQ(dld, dst)
	}
	ADDQ(Imm(lanes), src)
	DECQ(n)
	JNE(LabelRef("block"))
	VZEROUPPER()
	RET()
}
