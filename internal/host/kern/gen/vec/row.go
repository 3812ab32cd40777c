package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A row's elements are of four bytes.
var (
	n, at  = reg.RCX, reg.RAX
	places = []reg.GPPhysical{reg.RSI, reg.RDI, reg.R8, reg.R9, reg.R10}
	tails  = []reg.Register{reg.K6, reg.K7} // the elements that there are of the last vectors, where they are wide
)

// row writes a kernel of n elements, whose body makes what is written of what is read. The last vectors, if there are not
// as many elements, are under masks. It waits for memory rather than for arithmetic: vectors of 16 elements make it no
// faster, and the processor's clock slower.
func row(name, all, read, written string, body func(read []*value) []*value) {
	rowOf(false, name, all, read, written, body)
}

// past tells that stores go past the caches, to a dst that begins with a cache line: a negative n asks for that.
var past bool

// function writes a row that computes more than it moves, for both widths. The processor's look ahead is full of arithmetic:
// memory is asked for early.
func function(name, all, read, written string, body func(read []*value) []*value) {
	rowOf(true, name, all, read, written, body)
}

const ahead = 4096 // bytes

func rowOf(computes bool, name, all, read, written string, body func(read []*value) []*value) {
	names := strings.Fields(all)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(n int, %s *float32, scalars *float32)", strings.Join(names, ", ")))
	Pragma("noescape")
	Doc(name + " is a kernel of rows.")
	addresses := map[string]reg.GPPhysical{}
	for i, r := range names {
		addresses[r] = places[i]
		Load(Param(r), places[i])
	}
	Load(Param("scalars"), reg.RDX)
	Load(Param("n"), n)
	XORQ(at, at)
	code := func() {
		widths(computes, func() {
			if computes {
				for _, r := range names {
					if !past || r != written {
						prefetch(addresses[r])
					}
				}
			}
			var in []*value
			for _, r := range strings.Fields(read) {
				in = append(in, load(addresses[r]))
			}
			for i, v := range body(in) {
				store(v, addresses[strings.Fields(written)[i]])
			}
		}, rowLoop)
	}
	only := !strings.Contains(" "+read+" ", " "+written+" ") // it writes one row, and does not read it
	if only {
		TESTQ(n, n)
		JLT(LabelRef("past"))
	}
	code()
	if only {
		past = true
		Label("past")
		NEGQ(n)
		code()
		past = false
	}
}

// widths records a body and writes its code for vectors of 8 elements, and of 16 where the level has them.
func widths(also16 bool, body func(), loop func(body []*value)) {
	code := func(is16 bool) {
		wide, steps = is16, nil
		body()
		loop(steps)
		VZEROUPPER()
		RET()
	}
	wide = false
	if also16 {
		CMPQ(NewDataAddr(Symbol{Name: "·level"}, 0), Imm(2)) // avx512
		JGE(LabelRef(label("wide")))
	}
	code(false)
	if also16 {
		Label(label("wide"))
		code(true)
	}
}

// label has its width in its name, and whether stores go past the caches.
func label(name string) string {
	if wide {
		name = "wide_" + name
	}
	if past {
		name = "past_" + name
	}
	return name
}

func rowLoop(body []*value) {
	vectors, fixed := plan(2, body)
	elements := uint64(vectors * lanes())
	loadFixed(fixed)
	SUBQ(Imm(elements), n)
	JL(LabelRef(label("rest")))
	Label(label("loop"))
	written(vectors, fixed, body, false)
	ADDQ(Imm(elements), at)
	SUBQ(Imm(elements), n)
	JGE(LabelRef(label("loop")))
	Label(label("rest"))
	ADDQ(Imm(elements), n)
	JE(LabelRef(label("done")))
	if wide { // so many bits
		MOVL(I32(-1), reg.EBX)
		BZHIL(reg.ECX, reg.EBX, reg.EBX)
		for q := range vectors {
			if q > 0 {
				SHRL(Imm(16), reg.EBX)
			}
			KMOVW(reg.EBX, tails[q])
		}
	} else {
		LEAQ(tailMask(), reg.RBX)
		SHLQ(Imm(2), n)
		SUBQ(n, reg.RBX)
	}
	written(vectors, fixed, body, true)
	Label(label("done"))
	if past {
		SFENCE() // before anybody is told that dst is written
	}
}

var tailMasks Mem

// tailMask is where 16 lanes end that there are, and as many begin that there are not.
func tailMask() Mem {
	if tailMasks.Base == nil {
		tailMasks = GLOBL("vecTail", attr.RODATA|attr.NOPTR)
		for i := range 32 {
			DATA(4*i, I32(i/16-1))
		}
	}
	return tailMasks.Offset(64)
}

// element is where the row at p has vector q.
func element(p reg.Register, q int) Mem {
	return Mem{Base: p, Index: at, Scale: 4, Disp: q * vectorBytes()}
}

// prefetch asks for what of the row at p is soon read or written.
func prefetch(p reg.Register) {
	s := &value{}
	s.lower = func(e *emitter, q int) {
		if m := element(p, q).Offset(ahead); !e.tail && m.Disp%64 == 0 {
			e.do(PREFETCHT0, m)
		}
	}
	step(s)
}

// load is of the row at p.
func load(p reg.Register) *value {
	s := &value{}
	s.lower = func(e *emitter, q int) {
		r := e.result(s, q)
		switch {
		case !e.tail:
			e.do(VMOVUPS, element(p, q), r)
		case wide:
			e.do(VMOVUPS_Z, element(p, q), tails[q], r)
		default:
			e.do(VMOVUPS, Mem{Base: reg.RBX, Disp: 32 * q}, r)
			e.do(VMASKMOVPS, element(p, q), r, r)
		}
	}
	return step(s)
}

func store(v *value, p reg.Register) {
	s := &value{args: []*value{v}}
	s.lower = func(e *emitter, q int) {
		r := e.register(v, q)
		switch {
		case !e.tail && past:
			e.do(VMOVNTPS, r, element(p, q))
		case !e.tail:
			e.do(VMOVUPS, r, element(p, q))
		case wide:
			e.do(VMOVUPS, r, tails[q], element(p, q))
		default:
			m := e.take(false)
			e.temps = append(e.temps, m)
			e.do(VMOVUPS, Mem{Base: reg.RBX, Disp: 32 * q}, m)
			e.do(VMASKMOVPS, r, m, element(p, q))
		}
	}
	step(s)
}
