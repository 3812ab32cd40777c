package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Reductions of rows with AVX-512: of what a body makes of an element, one number of the whole row. Two vectors in turns
// have an accumulator each, or for sums in float64, one for each half.
func reductions() {
	reduction("sumWide", "x", "", "float64", func(in []*value) { accumulate(in[0]) })
	reduction("squaresWide", "x", "", "float64", func(in []*value) { accumulateProduct(in[0], in[0]) })
	reduction("dotWide", "x y", "", "float64", func(in []*value) { accumulateProduct(in[0], in[1]) })
	reduction("maxWide", "x", "", "float32", func(in []*value) { accumulateGreatest(in[0]) })
	reduction("sumExpWide", "x", "", "float64", func(in []*value) { accumulatePositive(exp(sub(in[0], scalar(0)))) })
	reduction("expSumWide", "x", "dst", "float64", func(in []*value) {
		e := exp(sub(in[0], scalar(0)))
		store(e, places[0])
		accumulatePositive(e)
	})
}

// accumulators are those of vector q.
func accumulators(q int) []reg.VecPhysical { return zmm[28+2*q:][:2] }

// accumulatePositive adds the two vectors in float32 first: nothing that matters is lost where all are positive.
func accumulatePositive(v *value) {
	both := zmm[27]
	s := &value{args: []*value{v}}
	s.lower = func(e *emitter, q int) {
		r := present(e, v, q)
		if q == 0 {
			e.do(VMOVAPS, r, both)
			return
		}
		e.do(VADDPS, r, both, both)
		for h, a := range accumulators(0) {
			e.do(VADDPD, doubles(e, both, h), a, a)
		}
	}
	step(s)
}

// reduction writes a kernel that reads rows and may write one.
func reduction(name, read, written, result string, body func(in []*value)) {
	names := strings.Fields(written + " " + read)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(n int, %s *float32, scalars *float32) %s", strings.Join(names, ", "), result))
	Pragma("noescape")
	Doc(name + " is a reduction of rows.")
	for i, r := range names {
		Load(Param(r), places[i])
	}
	Load(Param("scalars"), reg.RDX)
	Load(Param("n"), n)
	XORQ(at, at)
	for _, a := range zmm[28:] {
		if result == "float32" {
			VBROADCASTSS(constant(0xff800000), a) // -∞
		} else {
			VPXORD(a, a, a)
		}
	}
	wide, steps, reserved = true, nil, 5
	for i := range names {
		prefetch(places[i])
	}
	var in []*value
	for i := range names {
		if names[i] != written {
			in = append(in, load(places[i]))
		}
	}
	body(in)
	rowLoop(steps)
	reserved = 0
	a := zmm[28]
	if result == "float32" {
		join(VMAXPS)
		for _, shuffle := range []uint64{0x4e, 0xb1} {
			VPERMILPS(Imm(shuffle), a.AsX(), reg.X0)
			VMAXPS(reg.X0, a.AsX(), a.AsX())
		}
	} else {
		join(VADDPD)
		VPERMILPD(Imm(1), a.AsX(), reg.X0)
		VADDSD(reg.X0, a.AsX(), a.AsX())
	}
	VMOVAPS(a.AsX(), reg.X0)
	Store(reg.X0, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// join makes one accumulator of four, of 16 bytes.
func join(f func(...Op)) {
	a := zmm[28:]
	f(a[2], a[0], a[0])
	f(a[3], a[1], a[1])
	f(a[1], a[0], a[0])
	VEXTRACTF64X4(Imm(1), a[0], reg.Y0)
	f(reg.Y0, a[0].AsY(), a[0].AsY())
	VEXTRACTF64X2(Imm(1), a[0].AsY(), reg.X0)
	f(reg.X0, a[0].AsX(), a[0].AsX())
}

// present is v of vector q, with zeros for what is beyond the row.
func present(e *emitter, v *value, q int) reg.VecPhysical {
	r := e.register(v, q)
	if e.tail {
		t := e.take(false)
		e.temps = append(e.temps, t)
		e.do(VMOVAPS_Z, r, tails[q], t)
		r = t
	}
	return r.(reg.VecPhysical)
}

// doubles are the lower or the higher half of r in float64.
func doubles(e *emitter, r reg.VecPhysical, half int) reg.Register {
	t := e.take(false)
	e.temps = append(e.temps, t)
	from := r.AsY()
	if half == 1 {
		from = t.(reg.VecPhysical).AsY()
		e.do(VEXTRACTF64X4, Imm(1), r, from)
	}
	e.do(VCVTPS2PD, from, t)
	return t
}

func accumulate(v *value) {
	s := &value{args: []*value{v}}
	s.lower = func(e *emitter, q int) {
		r := present(e, v, q)
		for h, a := range accumulators(q) {
			e.do(VADDPD, doubles(e, r, h), a, a)
		}
	}
	step(s)
}

func accumulateProduct(x, y *value) {
	s := &value{args: []*value{x, y}}
	s.lower = func(e *emitter, q int) {
		r := present(e, x, q)
		for h, a := range accumulators(q) {
			f := doubles(e, r, h)
			if g := f; x == y {
				e.do(VFMADD231PD, f, g, a)
			} else {
				e.do(VFMADD231PD, doubles(e, e.register(y, q).(reg.VecPhysical), h), f, a)
			}
		}
	}
	step(s)
}

// accumulateGreatest passes over NaNs.
func accumulateGreatest(v *value) {
	s := &value{args: []*value{v}}
	s.lower = func(e *emitter, q int) {
		a := accumulators(q)[0]
		if e.tail {
			e.do(VMAXPS, a, e.register(v, q), tails[q], a)
		} else {
			e.do(VMAXPS, a, e.register(v, q), a)
		}
	}
	step(s)
}
