package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// philox writes the numbers of n times 32 blocks of Philox 4x32-10, each block's four side by side. start is the first
// block's counter, four words, and its key, two; its first word, which must not overflow, goes on with the blocks.
func philox() {
	TEXT("philoxVec", NOSPLIT, "func(n int, dst, start *uint32)")
	Pragma("noescape")
	Doc("philoxVec makes random numbers, for 32 blocks at a time.")
	dst := reg.RDI
	Load(Param("n"), n)
	Load(Param("dst"), dst)
	Load(Param("start"), reg.RDX)
	numbers := GLOBL("philoxBlocks", attr.RODATA|attr.NOPTR)
	for i := range 32 {
		DATA(4*i, U32(uint32(i)))
	}
	widths(true, func() {
		word := func(i int) *value { // of start
			s := &value{}
			s.lower = func(e *emitter, q int) {
				e.do(VPBROADCASTD, Mem{Base: reg.RDX, Disp: 4 * i}, e.result(s, q))
			}
			return step(s)
		}
		counter := &value{}
		counter.lower = func(e *emitter, q int) {
			r := e.result(counter, q)
			e.do(VPBROADCASTD, Mem{Base: reg.RDX}, r)
			e.do(VPADDD, numbers.Offset(q*vectorBytes()), r, r)
		}
		step(counter)
		c := [4]*value{counter, word(1), word(2), word(3)}
		keys := [2]*value{word(4), word(5)}
		for round := range 10 {
			if round > 0 {
				keys[0] = addInts(keys[0], bits(0x9E3779B9))
				keys[1] = addInts(keys[1], bits(0xBB67AE85))
			}
			h0, l0 := product(c[0], bits(0xD2511F53))
			h1, l1 := product(c[2], bits(0xCD9E8D57))
			c = [4]*value{xor3(h1, c[1], keys[0]), l1, xor3(h0, c[3], keys[1]), l0}
		}
		var quarters [4]*value
		for i := range 2 {
			low := apply([]instruction{VPUNPCKLDQ, VPUNPCKHDQ}[i], nil, nil, c[0], c[1])
			high := apply([]instruction{VPUNPCKLDQ, VPUNPCKHDQ}[i], nil, nil, c[2], c[3])
			quarters[2*i] = apply(VPUNPCKLQDQ, nil, nil, low, high)
			quarters[2*i+1] = apply(VPUNPCKHQDQ, nil, nil, low, high)
		}
		for i, v := range quarters { // blocks i, i+4, …
			s := &value{args: []*value{v}}
			s.lower = func(e *emitter, q int) {
				for j := range lanes() / 4 {
					to := Mem{Base: dst, Disp: 4*vectorBytes()*q + 16*(i+4*j)}
					if wide {
						e.do(VEXTRACTI32X4, Imm(uint64(j)), e.register(v, q), to)
					} else {
						e.do(VEXTRACTI128, Imm(uint64(j)), e.register(v, q), to)
					}
				}
			}
			step(s)
		}
	}, func(body []*value) {
		vectors, fixed := plan(2, body)
		loadFixed(fixed)
		if wide {
			MOVL(I32(0xAAAA), reg.EBX)
			KMOVW(reg.EBX, reg.K6) // odd lanes
		} else {
			IMUL3Q(U8(4/vectors), n, n)
		}
		Label(label("loop"))
		written(vectors, fixed, body, false)
		ADDL(Imm(uint64(vectors*lanes())), Mem{Base: reg.RDX})
		ADDQ(U32(4*vectors*vectorBytes()), dst)
		DECQ(n)
		JNE(LabelRef(label("loop")))
	})
}

// product makes the high and the low words of a·f.
func product(a, f *value) (high, low *value) {
	shift := func(f instruction, x *value) *value { return apply(f, nil, []Op{Imm(32)}, x) }
	multiply := func(x *value) *value {
		s := &value{args: []*value{x, f}}
		s.lower = func(e *emitter, q int) { e.do(VPMULUDQ, e.register(f, q), e.register(x, q), e.result(s, q)) }
		return step(s)
	}
	even, odd := multiply(a), multiply(shift(VPSRLQ, a))
	return odds(odd, shift(VPSRLQ, even)), odds(shift(VPSLLQ, odd), even)
}

// odds is a in the odd lanes, else b.
func odds(a, b *value) *value {
	s := &value{args: []*value{a, b}}
	s.lower = func(e *emitter, q int) {
		x, y := e.register(a, q), e.register(b, q)
		if wide {
			e.do(VPBLENDMD, x, y, reg.K6, e.result(s, q))
		} else {
			e.do(VPBLENDD, Imm(0xAA), x, y, e.result(s, q))
		}
	}
	return step(s)
}

func xor3(a, b, c *value) *value {
	if !wide {
		return xor(xor(a, b), c)
	}
	s := &value{args: []*value{a, b, c}}
	s.lower = func(e *emitter, q int) {
		x, y := e.register(b, q), e.register(c, q)
		r := e.at[place{a, q}] // a is not used again
		delete(e.at, place{a, q})
		e.do(VPTERNLOGD, Imm(0x96), x, y, r)
		e.at[place{s, q}] = r
	}
	return step(s)
}

// random are rows of random numbers.
func random() {
	row2("dropVec", "x numbers", func(x, numbers *value) *value { // scale, the greatest number that drops
		return where(above(right(numbers, 8), scalar(1)), mul(x, scalar(0)))
	})
}

// uniform writes 4·n numbers in [0, 1), of the upper 24 bits of random ones, times a scalar, plus another, in float64.
func uniform() {
	TEXT("uniformVec", NOSPLIT, "func(n int, dst *float32, numbers *uint32, scalars *float64)")
	Pragma("noescape")
	Doc("uniformVec is a kernel of rows.")
	dst, numbers, scale, shift := reg.RDI, reg.RSI, reg.Y1, reg.Y2
	Load(Param("n"), n)
	Load(Param("dst"), dst)
	Load(Param("numbers"), numbers)
	Load(Param("scalars"), reg.RDX)
	VBROADCASTSD(Mem{Base: reg.RDX}, scale)
	VBROADCASTSD(Mem{Base: reg.RDX, Disp: 8}, shift)
	Label("loop")
	VMOVDQU(Mem{Base: numbers}, reg.X0)
	VPSRLD(Imm(8), reg.X0, reg.X0)
	VCVTDQ2PD(reg.X0, reg.Y0)
	VMULPD(scale, reg.Y0, reg.Y0)
	VADDPD(shift, reg.Y0, reg.Y0)
	VCVTPD2PSY(reg.Y0, reg.X0)
	VMOVUPS(reg.X0, Mem{Base: dst})
	ADDQ(Imm(16), dst)
	ADDQ(Imm(16), numbers)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
