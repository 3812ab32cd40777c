package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Blocks of 256 elements in codes of 8 bits: see Code8, whose tables, of 16 entries each, are in memory in this order.
const (
	offsets = 64 * iota
	units
	rests
	ends
	slopes
	shifts
	lasts
	factor
	least = factor + 4

	block8 = 256
)

var (
	floats, codes, scales, tables = reg.RDI, reg.RSI, reg.R8, reg.R9
	local                         Mem
)

func tableEntry(at int, i *value) *value {
	return entry(fmt.Sprint("code8", at), Mem{Base: tables, Disp: at}, i)
}

func tableScalar(at int) *value {
	return keep(fmt.Sprint("code8 scalar", at), Mem{Base: tables, Disp: at}, false)
}

func code8() {
	coded("decodeSigned8", "dst *float32, src *uint8", "dst", "src", func() { decode(true) })
	coded("decodeUnsigned8", "dst *float32, src *uint8", "dst", "src", func() { decode(false) })
	coded("encodeSigned8", "dst *uint8, src *float32", "src", "dst", func() { encode(true) })
	coded("encodeUnsigned8", "dst *uint8, src *float32", "src", "dst", func() { encode(false) })
}

func coded(name, rows, floatRow, codeRow string, body func()) {
	TEXT(name, NOSPLIT, "func(n int, "+rows+", scales, tables *float32)")
	Pragma("noescape")
	Doc(name + " is for n blocks.")
	Load(Param("n"), n)
	Load(Param(floatRow), floats)
	Load(Param(codeRow), codes)
	Load(Param("scales"), scales)
	Load(Param("tables"), tables)
	encodes := floatRow == "src"
	if encodes {
		local = AllocLocal(8)
	}
	widths(true, body, func(body []*value) {
		vectors, fixed := plan(2, body)
		Label(label("block"))
		if encodes {
			scaleOfBlock()
		}
		loadFixed(fixed)
		XORQ(at, at)
		Label(label("loop"))
		written(vectors, fixed, body, false)
		ADDQ(Imm(uint64(vectors*lanes())), at)
		CMPQ(at, U32(block8))
		JL(LabelRef(label("loop")))
		ADDQ(U32(4*block8), floats)
		ADDQ(U32(block8), codes)
		ADDQ(Imm(4), scales)
		DECQ(n)
		JNE(LabelRef(label("block")))
	})
}

func code(q int) Mem { return Mem{Base: codes, Index: at, Scale: 1, Disp: q * lanes()} }

func decode(signed bool) {
	s := &value{}
	s.lower = func(e *emitter, q int) { e.do(VPMOVZXBD, code(q), e.result(s, q)) }
	c8 := step(s)
	var u, sign *value
	if signed { // |128 - c| = 128 - s, and the difference has the sign
		sign = subInts(bits(128), c8)
		u = fnma(float(absInt(sign)), c(2), c(257))
	} else {
		u = float(addInts(c8, bits(1)))
	}
	i := right(u, 23)
	k := fma(u, tableScalar(factor), tableEntry(offsets, i))
	x := fma(k, tableEntry(units, i), mul(k, tableEntry(rests, i)))
	if signed {
		x = xor(x, and(sign, bits(0x80000000)))
	}
	store(mul(x, keep("scale of block", Mem{Base: scales}, false)), floats)
}

func encode(signed bool) {
	v := load(floats)
	x := greater(mul(v, keep("inverse", local, false)), tableScalar(least))
	size := x
	if signed {
		size = abs(x)
	}
	words := func(f instruction, a *value, b uint32) *value {
		s := &value{args: []*value{a, bits(b)}}
		s.lower = func(e *emitter, q int) { e.do(f, e.register(s.args[1], q), e.register(a, q), e.result(s, q)) }
		return step(s)
	}
	k := words(VPMULHUW, words(VPSUBUSW, right(size, 16), 13620), 154)
	k = next(compare(lessEqual, tableEntry(ends, k), size), k)
	s := truncated(add(mul(size, tableEntry(slopes, k)), tableEntry(shifts, k)))
	s = smallerInt(s, tableEntry(lasts, k))
	if signed {
		m := apply(VPSRAD, nil, []Op{Imm(31)}, x)
		s = subInts(xor(s, m), m)
	} else {
		s = greaterInt(s, smallerUint(v, bits(1)))
	}
	storeBytes(s)
}

// next is k+1 where the mask is; k is not used again.
func next(mask, k *value) *value {
	if !wide {
		return subInts(k, mask)
	}
	s := &value{args: []*value{mask, k}}
	s.lower = func(e *emitter, q int) {
		r := e.at[place{k, q}]
		delete(e.at, place{k, q})
		e.do(VPADDD_BCST, constant(1), r, e.register(mask, q), r)
		e.at[place{s, q}] = r
	}
	return step(s)
}

func storeBytes(v *value) {
	if !wide {
		v = and(v, bits(0xff))
	}
	s := &value{args: []*value{v}}
	s.lower = func(e *emitter, q int) {
		r := e.register(v, q)
		if wide {
			e.do(VPMOVDB, r, code(q))
			return
		}
		t := e.take(false)
		e.temps = append(e.temps, t)
		x, y := t.(reg.VecPhysical).AsX(), r.(reg.VecPhysical).AsX()
		e.do(VEXTRACTI128, Imm(1), r, x)
		e.do(VPACKUSDW, x, y, x)
		e.do(VPACKUSWB, x, x, x)
		e.do(VMOVQ, x, code(q))
	}
	step(s)
}

// scaleOfBlock stores a block's greatest size as its scale, and the inverse in the local variable: 0 if there is none.
func scaleOfBlock() {
	top, size := []reg.Register{vector(0), vector(1), vector(2), vector(3)}, vector(5)
	if wide {
		VPBROADCASTD(constant(0x7fffffff), size)
	} else {
		VMOVDQU(constant(0x7fffffff), size)
	}
	for i := range block8 / lanes() {
		m := Mem{Base: floats, Disp: i * vectorBytes()}
		if i < len(top) {
			VANDPS(m, size, top[i])
			continue
		}
		VANDPS(m, size, vector(4))
		VPMAXUD(vector(4), top[i%len(top)], top[i%len(top)])
	}
	VPMAXUD(top[1], top[0], top[0])
	VPMAXUD(top[3], top[2], top[2])
	VPMAXUD(top[2], top[0], top[0])
	if wide {
		VEXTRACTI64X4(Imm(1), reg.Z0, reg.Y1)
		VPMAXUD(reg.Y1, reg.Y0, reg.Y0)
	}
	VEXTRACTI128(Imm(1), reg.Y0, reg.X1)
	VPMAXUD(reg.X1, reg.X0, reg.X0)
	for _, order := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(order), reg.X0, reg.X1)
		VPMAXUD(reg.X1, reg.X0, reg.X0)
	}
	VMOVD(reg.X0, reg.EBX)
	VXORPS(reg.X1, reg.X1, reg.X1)
	CMPL(reg.EBX, U32(1<<23))
	JCC(LabelRef(label("normal")))
	VXORPS(reg.X0, reg.X0, reg.X0)
	JMP(LabelRef(label("scaled")))
	Label(label("normal"))
	VMOVSS(constant(0x3f800000), reg.X1) // 1
	VDIVSS(reg.X0, reg.X1, reg.X1)
	Label(label("scaled"))
	VMOVSS(reg.X0, Mem{Base: scales})
	VMOVSS(reg.X1, local)
}
