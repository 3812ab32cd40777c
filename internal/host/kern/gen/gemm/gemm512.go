package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Zmm are the vector registers of AVX-512: each holds 16 float32, 8 float64, or 16 pairs of bfloat16.
var zmm = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}

const zlanes = 64 // bytes of a vector

// dot adds to 16 float32 the products of pairs of bfloat16: VDPBF16PS, which the assembler does not know.
func dot(o ...Op) {
	y, x, sum := id(o[0]), id(o[1]), id(o[2])
	clear := func(v, bit uint) uint32 { return uint32(^v >> bit & 1) } // these fields are stored inverted
	p0 := clear(sum, 3)<<7 | clear(y, 4)<<6 | clear(y, 3)<<5 | clear(sum, 4)<<4 | 2
	p1 := uint32(^x&15)<<3 | 6
	p2 := 2<<5 | clear(x, 4)<<3
	word := func(opcode string, bytes Constant) {
		Instruction(&ir.Instruction{Opcode: opcode, Operands: []Op{bytes}})
	}
	word("LONG", U32(p2<<24|p1<<16|p0<<8|0x62))
	word("WORD", U16(0xc0|(sum&7)<<3|y&7)<<8|0x52)
}

// round makes 16 bfloat16 of 16 float32: VCVTNEPS2BF16, which the assembler does not know either.
func round(x, half reg.VecPhysical) {
	from, to := id(x), id(half)
	clear := func(v, bit uint) uint32 { return uint32(^v >> bit & 1) }
	p0 := clear(to, 3)<<7 | clear(from, 4)<<6 | clear(from, 3)<<5 | clear(to, 4)<<4 | 2
	const p1, p2 = 0x7e, 0x48
	Instruction(&ir.Instruction{Opcode: "LONG", Operands: []Op{U32(p2<<24 | p1<<16 | p0<<8 | 0x62)}})
	Instruction(&ir.Instruction{Opcode: "WORD", Operands: []Op{U16(0xc0|(to&7)<<3|from&7)<<8 | 0x72}})
}

func id(o Op) uint { return uint(o.(reg.VecPhysical).PhysicalIndex()) }

// tile512 is like gemm, for up to 14 rows of up to two vectors, or up to 4 rows of six. The last vector of one or two
// has a mask. As many accumulators hide the latency of two FMA units, and every value of a is loaded once. Sums of pairs
// are stored as bfloat16 where the mask has more bits than lanes.
func tile512(t elem, mr, vectors int) {
	TEXT(fmt.Sprintf("gemm%sz%dx%d", t.name, mr, vectors), NOSPLIT,
		fmt.Sprintf("func(k int, a *%[1]s, ars, acs int, b *%[1]s, bs int, c *%[1]s, ldc int, d *%[1]s, ldd int, mask uint32)", t.goType))
	Pragma("noescape")
	k, b, bs, ars, ars3, acs := reg.RCX, reg.RDI, reg.RDX, reg.R12, reg.R11, reg.R13
	bases := []reg.GPPhysical{reg.RSI, reg.R8, reg.R15}[:(mr+4)/5] // rows 0, 5 and 10
	Load(Param("k"), k)
	Load(Param("a"), bases[0])
	Load(Param("ars"), ars)
	Load(Param("acs"), acs)
	Load(Param("b"), b)
	Load(Param("bs"), bs)
	LEAQ(Mem{Base: ars, Index: ars, Scale: 2}, ars3)
	for i := 1; i < len(bases); i++ {
		LEAQ(Mem{Base: bases[i-1], Index: ars, Scale: 4}, bases[i])
		ADDQ(ars, bases[i])
	}
	row := func(i int) Mem {
		m := Mem{Base: bases[i/5], Index: ars}
		switch i % 5 {
		case 0:
			m.Index = nil
		case 3:
			m.Index, m.Scale = ars3, 1
		default:
			m.Scale = uint8(i % 5)
		}
		return m
	}
	masked := vectors <= 2
	if masked {
		Load(Param("mask"), reg.EAX)
		KMOVW(reg.EAX, reg.K1)
	}
	last := func(j int) bool { return masked && j == vectors-1 }
	acc := func(i, j int) reg.VecPhysical { return zmm[i*vectors+j] }
	bv := zmm[mr*vectors:][:vectors]
	temps := zmm[(mr+1)*vectors:]
	temps = temps[:min(len(temps), 4)]
	for i := range mr * vectors {
		VPXORD(zmm[i], zmm[i], zmm[i])
	}
	c, ldc, d, ldd := reg.RAX, reg.RBX, reg.R9, reg.R10
	Load(Param("c"), c)
	Load(Param("ldc"), ldc)
	for range mr { // by the time it is needed it is there
		for j := range vectors {
			PREFETCHT1(Mem{Base: c, Disp: j * zlanes})
		}
		ADDQ(ldc, c)
	}
	step := func() {
		for j := range bv {
			if m := (Mem{Base: b, Disp: j * zlanes}); last(j) {
				t.maskz(m, reg.K1, bv[j])
			} else {
				t.move(m, bv[j])
			}
			if vectors > 2 { // rows of b lie far from each other
				PREFETCHT0(Mem{Base: b, Index: bs, Scale: 8, Disp: j * zlanes})
			}
		}
		for i := range mr {
			x := temps[i%len(temps)]
			t.broadcast(row(i), x)
			for j := range bv {
				t.fma(bv[j], x, acc(i, j))
			}
		}
		ADDQ(bs, b)
		for _, a := range bases {
			ADDQ(acs, a)
		}
	}
	if mr*vectors > 12 {
		Label("loop")
		step()
		DECQ(k)
		JNE(LabelRef("loop"))
	} else {
		each(k, step)
	}
	Load(Param("c"), c)
	Load(Param("d"), d)
	Load(Param("ldd"), ldd)
	TESTQ(d, d)
	JE(LabelRef("store"))
	for i := range mr {
		for j := range vectors {
			if m := (Mem{Base: d, Disp: j * zlanes}); last(j) {
				t.add(m, acc(i, j), reg.K1, acc(i, j))
			} else {
				t.add(m, acc(i, j), acc(i, j))
			}
		}
		ADDQ(ldd, d)
	}
	Label("store")
	if t.rounds {
		Load(Param("mask"), reg.EDX)
		SHRL(Imm(16), reg.EDX)
		JNE(LabelRef("round"))
	}
	for i := range mr {
		for j := range vectors {
			if m := (Mem{Base: c, Disp: j * zlanes}); last(j) {
				t.move(acc(i, j), reg.K1, m)
			} else {
				t.move(acc(i, j), m)
			}
		}
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
	if !t.rounds {
		return
	}
	Label("round")
	for i := range mr {
		for j := range vectors {
			m, half := Mem{Base: c, Disp: j * zlanes / 2}, zmm[id(acc(i, j))].(reg.Vec).AsY()
			round(acc(i, j), acc(i, j))
			if last(j) {
				VMOVDQU16(half, reg.K1, m)
			} else {
				VMOVDQU16(half, m)
			}
		}
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
}
