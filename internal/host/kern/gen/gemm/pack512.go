package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A format is what is stored, and packed as float32, float64 or pairs of bfloat16.
type format struct {
	name, goType string
	double       bool
	// load makes a vector of what k masks of the values at m; it may use a second row, ss bytes on, and a second vector.
	load func(row reg.GPPhysical, ss reg.Register, disp int, k, v, w reg.Register)
	rows int // that load reads
	size int // of a vector's values in memory
	// split makes of a vector of pairs one of the even values and one of the odd ones. Nil: there are no pairs.
	split func(pairs, even, odd reg.VecPhysical)
}

var formats = []format{
	{name: "F32", goType: "float32", rows: 1, size: 64,
		load: func(row reg.GPPhysical, _ reg.Register, disp int, k, v, _ reg.Register) {
			VMOVUPS_Z(Mem{Base: row, Disp: disp}, k, v)
		}},
	{name: "F64", goType: "float64", double: true, rows: 1, size: 64,
		load: func(row reg.GPPhysical, _ reg.Register, disp int, k, v, _ reg.Register) {
			VMOVUPD_Z(Mem{Base: row, Disp: disp}, k, v)
		}},
	{name: "B16", goType: "uint16", rows: 1, size: 32,
		load: func(row reg.GPPhysical, _ reg.Register, disp int, k, v, _ reg.Register) {
			VPMOVZXWD_Z(Mem{Base: row, Disp: disp}, k, v)
			VPSLLD(Imm(16), v, v)
		},
		split: func(pairs, even, odd reg.VecPhysical) {
			VPSLLD(Imm(16), pairs, even)
			VPANDD(high, pairs, odd)
		}},
	{name: "F16", goType: "uint16", rows: 1, size: 32,
		load: func(row reg.GPPhysical, _ reg.Register, disp int, k, v, _ reg.Register) {
			VCVTPH2PS_Z(Mem{Base: row, Disp: disp}, k, v)
		},
		split: func(pairs, even, odd reg.VecPhysical) {
			VPMOVDW(pairs, even.(reg.Vec).AsY())
			VPSRLD(Imm(16), pairs, odd)
			VPMOVDW(odd, odd.(reg.Vec).AsY())
			VCVTPH2PS(even.(reg.Vec).AsY(), even)
			VCVTPH2PS(odd.(reg.Vec).AsY(), odd)
		}},
	{name: "Pairs", goType: "uint16", rows: 2, size: 32,
		load: func(row reg.GPPhysical, ss reg.Register, disp int, k, v, w reg.Register) {
			VPMOVZXWD_Z(Mem{Base: row, Disp: disp}, k, v)
			VPMOVZXWD_Z(Mem{Base: row, Index: ss, Scale: 1, Disp: disp}, k, w)
			VPSLLD(Imm(16), w, w)
			VPORD(w, v, v)
		}},
}

var (
	order = zmm[31]
	high  = zmm[30] // the upper half of 32 bits
)

// copy512 makes dst[p][i] of src[p][i], for k rows p and one or two vectors of columns i, each with 16 bits of mask.
func copy512(f format, vectors int) {
	TEXT(fmt.Sprintf("copy%sz%d", f.name, vectors), NOSPLIT,
		fmt.Sprintf("func(k int, src *%s, ss int, dst *%s, ds int, mask uint32)", f.goType, f.packed()))
	Pragma("noescape")
	k, src, ss, dst, ds := reg.RCX, reg.RSI, reg.RDX, reg.RDI, reg.R8
	Load(Param("k"), k)
	Load(Param("src"), src)
	Load(Param("ss"), ss)
	Load(Param("dst"), dst)
	Load(Param("ds"), ds)
	Load(Param("mask"), reg.EAX)
	masks := []reg.Register{reg.K1, reg.K2}[:vectors]
	for _, m := range masks {
		KMOVW(reg.EAX, m)
		SHRL(Imm(16), reg.EAX)
	}
	each(k, func() {
		for j, m := range masks {
			f.load(src, ss, j*f.size, m, zmm[2*j], zmm[2*j+1])
			PREFETCHT0(Mem{Base: src, Index: ss, Scale: 8, Disp: j * f.size})
		}
		for j, m := range masks {
			f.store()(zmm[2*j], m, Mem{Base: dst, Disp: j * zlanes})
		}
		for range f.rows {
			ADDQ(ss, src)
		}
		ADDQ(ds, dst)
	})
	VZEROUPPER()
	RET()
}

func (f format) packed() string {
	if f.double {
		return "float64"
	}
	return "float32"
}

func (f format) store() func(...Op) {
	if f.double {
		return VMOVUPD
	}
	return VMOVUPS
}

// columns512 makes dst[p][i] of src[i][p], for up to a vector of i, and p in blocks of 16 bytes of each row. A quarter of a
// vector is loaded of a row, the quarters from rows some distance apart; so two steps of unpacking bring
// columns together. The rows that quarters begin at, and the distances of the others from them, come from Go: so that
// nothing is read of rows that do not exist. Order then brings each lane to its place, and mask tells which to store.
func columns512(f format) {
	TEXT("columns"+f.name+"z", NOSPLIT,
		fmt.Sprintf("func(blocks int, src *%s, from *[7]int, dst *%s, ds int, order *uint32, mask uint32)", f.goType, f.packed()))
	Pragma("noescape")
	blocks, dst, ds, ds3, from := reg.RCX, reg.RDI, reg.RDX, reg.RBX, reg.RAX
	src := []reg.GPPhysical{reg.RSI, reg.R8, reg.R9, reg.R10}
	step := []reg.GPPhysical{nil, reg.R11, reg.R12, reg.R13}
	Load(Param("blocks"), blocks)
	Load(Param("src"), src[0])
	Load(Param("dst"), dst)
	Load(Param("ds"), ds)
	Load(Param("order"), from)
	VMOVUPS(Mem{Base: from}, order)
	Load(Param("mask"), reg.EAX)
	KMOVW(reg.EAX, reg.K1)
	Load(Param("from"), from)
	for i := 1; i < 4; i++ {
		MOVQ(Mem{Base: from, Disp: 8 * i}, step[i])
		MOVQ(Mem{Base: from, Disp: 8 * (i + 3)}, src[i])
		ADDQ(src[0], src[i])
	}
	LEAQ(Mem{Base: ds, Index: ds, Scale: 2}, ds3)
	if f.split != nil {
		VPTERNLOGD(Imm(0xff), high, high, high)
		VPSLLD(Imm(16), high, high)
	}
	CMPQ(blocks, Imm(4))
	JL(LabelRef("single"))
	Label("loop") // a cache line of each row
	f.blocks(4, src, step, dst, ds, ds3)
	SUBQ(Imm(4), blocks)
	CMPQ(blocks, Imm(4))
	JGE(LabelRef("loop"))
	Label("single")
	TESTQ(blocks, blocks)
	JE(LabelRef("done"))
	f.blocks(1, src, step, dst, ds, ds3)
	DECQ(blocks)
	JMP(LabelRef("single"))
	Label("done")
	VZEROUPPER()
	RET()
}

// blocks transposes n blocks. All that is needed of a row is loaded at once: more rows than a set of the cache has ways
// may lie a page apart.
func (f format) blocks(n int, src, step []reg.GPPhysical, dst, ds, ds3 reg.GPPhysical) {
	rows := 4 // of a quarter
	if f.double {
		rows = 2
	}
	in := func(block, j int) reg.VecPhysical { return zmm[block*rows+j] }
	for j := range rows {
		for q := range 4 {
			for b := range n {
				at := Mem{Base: src[q], Disp: 16 * b}
				if j > 0 {
					at.Index, at.Scale = step[j], 1
				}
				if q == 0 {
					VMOVUPS(at, in(b, j).(reg.Vec).AsX())
				} else {
					VINSERTF32X4(Imm(uint64(q)), at, in(b, j), in(b, j))
				}
			}
		}
	}
	for b := range n {
		columns, t := zmm[16:18], zmm[20:24]
		if f.double {
			VUNPCKLPD(in(b, 1), in(b, 0), columns[0])
			VUNPCKHPD(in(b, 1), in(b, 0), columns[1])
		} else {
			columns = zmm[16:20]
			for q := 0; q < 4; q += 2 {
				VUNPCKLPS(in(b, q+1), in(b, q), t[q])
				VUNPCKHPS(in(b, q+1), in(b, q), t[q+1])
			}
			VUNPCKLPD(t[2], t[0], columns[0])
			VUNPCKHPD(t[2], t[0], columns[1])
			VUNPCKLPD(t[3], t[1], columns[2])
			VUNPCKHPD(t[3], t[1], columns[3])
		}
		var out []reg.VecPhysical
		for i, c := range columns {
			if f.double {
				VPERMPD(c, order, c)
			} else {
				VPERMPS(c, order, c)
			}
			if f.split == nil {
				out = append(out, c)
				continue
			}
			even, odd := zmm[20+2*i], zmm[21+2*i]
			f.split(c, even, odd)
			out = append(out, even, odd)
		}
		for i, v := range out {
			m := Mem{Base: dst}
			switch i % 4 {
			case 1:
				m.Index, m.Scale = ds, 1
			case 2:
				m.Index, m.Scale = ds, 2
			case 3:
				m.Index, m.Scale = ds3, 1
			}
			f.store()(v, reg.K1, m)
			if i == 3 && len(out) > 4 {
				LEAQ(Mem{Base: dst, Index: ds, Scale: 4}, dst)
			}
		}
		LEAQ(Mem{Base: dst, Index: ds, Scale: uint8(min(len(out), 4))}, dst)
	}
	for _, s := range src {
		ADDQ(Imm(uint64(16*n)), s)
	}
}
