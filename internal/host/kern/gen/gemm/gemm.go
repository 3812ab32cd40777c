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
	name := fmt.Sprintf("gemm%sx%dx%d", t.name, mr, v.vectors)
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
	each(k, func() {
		for j := range bv {
			if m := (Mem{Base: b, Disp: j * lanes}); last(j) {
				t.mask(m, mask, bv[j])
			} else {
				t.move(m, bv[j])
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
				t.mask(m, mask, bv[j])
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
				t.mask(acc(i, j), mask, m)
			} else {
				t.move(acc(i, j), m)
			}
		}
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
}

// copyRows makes dst[p][i] of src[p][i], for k rows p and one or two vectors of columns i. A masked one stores all lanes,
// zeros where there are none.
func copyRows(v variant) {
	name := fmt.Sprintf("copyF32x%d", v.vectors)
	if v.masked {
		name += "m"
	}
	TEXT(name, NOSPLIT, "func(k int, src *float32, ss int, dst *float32, ds int, mask *byte)")
	Pragma("noescape")
	k, src, ss, dst, ds := reg.RCX, reg.RSI, reg.RDX, reg.RDI, reg.R8
	Load(Param("k"), k)
	Load(Param("src"), src)
	Load(Param("ss"), ss)
	Load(Param("dst"), dst)
	Load(Param("ds"), ds)
	mask := ymm[15]
	if v.masked {
		Load(Param("mask"), reg.RAX)
		VMOVUPS(Mem{Base: reg.RAX}, mask)
	}
	each(k, func() {
		for j := range v.vectors {
			if m := (Mem{Base: src, Disp: j * lanes}); v.masked && j == v.vectors-1 {
				VMASKMOVPS(m, mask, ymm[j])
			} else {
				VMOVUPS(m, ymm[j])
			}
		}
		for j := range v.vectors {
			VMOVUPS(ymm[j], Mem{Base: dst, Disp: j * lanes})
		}
		ADDQ(ss, src)
		ADDQ(ds, dst)
	})
	VZEROUPPER()
	RET()
}
