package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The bodies of rows are formulas of vectors: each function here, called in a body, adds a step that makes a value of
// others. A body becomes code for vectors of 8 elements (AVX2) and of 16 (AVX-512), and for several of them in turns, as
// the steps of one wait for each other. A value holds a register from its step to its last use.

var ymm = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}

var zmm = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}

// wide tells that vectors have 16 elements.
var wide bool

// reserved are so many of the last registers: bodies have no values in them.
var reserved int

func lanes() int {
	if wide {
		return 16
	}
	return 8
}

func vectorBytes() int { return 4 * lanes() }

// An instruction is a function of avo's: of operands one by one, or of a list.
type instruction any

// A value is a vector, or the lanes where something holds, or of what lies in memory and does not change.
type value struct {
	mask  bool // a register K where vectors are wide, else a vector whose signs count
	mem   *Mem
	whole bool // there are all lanes of mem, and not one for all

	lower func(e *emitter, q int) // writes the step for vector q
	args  []*value
	last  int // step that uses it
}

// steps are those of the body at hand.
var steps []*value

func step(s *value) *value {
	for _, a := range s.args {
		a.last = len(steps)
	}
	steps = append(steps, s)
	return s
}

// An emitter writes a body for so many vectors, or, dry, sees whether there are registers enough.
type emitter struct {
	vectors     int
	dry, failed bool
	free, masks []reg.Register
	at          map[place]reg.Register
	fixed       map[*value]reg.Register // what does not change and has a register
	wanted      map[*value]int          // how often that would have been of use
	spread      map[*value]bool         // what was spread from memory instead
	temps       []reg.Register
	now         int // step
	tail        bool
}

type place struct {
	v *value
	q int
}

func (e *emitter) do(f instruction, ops ...Op) {
	if e.dry || e.failed {
		return
	}
	switch f := f.(type) {
	case func(...Op):
		f(ops...)
	case func(a Op):
		f(ops[0])
	case func(a, b Op):
		f(ops[0], ops[1])
	case func(a, b, c Op):
		f(ops[0], ops[1], ops[2])
	case func(a, b, c, d Op):
		f(ops[0], ops[1], ops[2], ops[3])
	default:
		panic(fmt.Sprintf("no instruction: %T", f))
	}
}

func (e *emitter) take(mask bool) reg.Register {
	pool := &e.free
	if mask && wide {
		pool = &e.masks
	}
	if len(*pool) == 0 {
		e.failed = true
		return vector(0)
	}
	r := (*pool)[0]
	*pool = (*pool)[1:]
	return r
}

// register has v of vector q, which it loads where it has none.
func (e *emitter) register(v *value, q int) reg.Register {
	if r, ok := e.fixed[v]; ok {
		return r
	}
	if r, ok := e.at[place{v, q}]; ok {
		return r
	}
	e.wanted[v]++
	r := e.take(false)
	e.temps = append(e.temps, r)
	e.load(v, r)
	return r
}

func (e *emitter) load(v *value, r reg.Register) {
	if v.whole {
		e.do(VMOVUPS, *v.mem, r)
	} else {
		e.do(VBROADCASTSS, *v.mem, r)
	}
}

// inMemory tells that v has no register.
func (e *emitter) inMemory(v *value) bool { return v.mem != nil && e.fixed[v] == nil }

// dies tells that v of a vector is not used after this step.
func (e *emitter) dies(v *value) bool { return v.mem == nil && v.last == e.now }

func (e *emitter) release(s *value, q int) {
	e.free = append(e.temps, e.free...)
	e.temps = nil
	for _, a := range s.args {
		if r, ok := e.at[place{a, q}]; ok && e.dies(a) {
			delete(e.at, place{a, q})
			if a.mask && wide {
				e.masks = append([]reg.Register{r}, e.masks...)
			} else {
				e.free = append([]reg.Register{r}, e.free...)
			}
		}
	}
}

// result has a new register, which may be that of an argument whose last use this is.
func (e *emitter) result(s *value, q int) reg.Register {
	e.release(s, q)
	r := e.take(s.mask)
	e.at[place{s, q}] = r
	return r
}

// source is what an instruction may read from memory, by f, or spread from there, by spread.
func (e *emitter) source(v *value, q int, f, spread instruction) (instruction, Op) {
	switch {
	case !e.inMemory(v):
	case v.whole:
		return f, *v.mem
	case wide && spread != nil:
		e.spread[v] = true
		return spread, *v.mem
	}
	return f, e.register(v, q)
}

// emit writes the steps of a body.
func (e *emitter) emit(body []*value) {
	for i, s := range body {
		e.now = i
		for q := range e.vectors {
			s.lower(e, q)
			e.release(s, q)
		}
	}
}

// vector is register i.
func vector(i int) reg.Register {
	if wide {
		return zmm[i]
	}
	return ymm[i]
}

func newEmitter(vectors int, fixed []*value) *emitter {
	e := &emitter{vectors: vectors, fixed: map[*value]reg.Register{}, wanted: map[*value]int{}, spread: map[*value]bool{}, at: map[place]reg.Register{}}
	for i := range 2*lanes() - reserved { // so many registers there are
		e.free = append(e.free, vector(i))
	}
	if wide {
		e.masks = []reg.Register{reg.K1, reg.K2, reg.K3, reg.K4, reg.K5}
	}
	for _, v := range fixed {
		e.fixed[v] = e.take(false)
	}
	return e
}

// plan tells for how many vectors a body has registers, and what should keep some all the time.
func plan(most int, body []*value) (vectors int, fixed []*value) {
	for vectors = most; vectors > 0; vectors-- {
		e := newEmitter(vectors, nil)
		e.dry, e.tail = true, true
		e.emit(body)
		fixed = fixed[:0]
		for _, s := range body {
			for _, a := range s.args {
				if e.wanted[a] > 0 {
					fixed = append(fixed, a)
					e.wanted[a] = 0
					delete(e.spread, a)
				}
			}
		}
		for _, s := range body {
			for _, a := range s.args {
				if e.spread[a] {
					fixed = append(fixed, a)
					delete(e.spread, a)
				}
			}
		}
		for n := len(fixed); n >= 0; n-- {
			e := newEmitter(vectors, fixed[:n])
			e.dry, e.tail = true, true
			if e.emit(body); !e.failed {
				return vectors, fixed[:n]
			}
		}
	}
	panic("too many values at a time")
}

// written emits a body.
func written(vectors int, fixed, body []*value, tail bool) {
	e := newEmitter(vectors, fixed)
	e.tail = tail
	e.emit(body)
}

// loadFixed loads what keeps its registers.
func loadFixed(fixed []*value) {
	e := newEmitter(1, fixed)
	for _, v := range fixed {
		e.load(v, e.fixed[v])
	}
}

// kept are what of this does not change: always the same value.
var kept = map[string]*value{}

func keep(name string, m Mem, whole bool) *value {
	name = fmt.Sprint(name, wide)
	if kept[name] == nil {
		kept[name] = &value{mem: &m, whole: whole}
	}
	return kept[name]
}

// c is a constant.
func c(v float64) *value { return bits(math.Float32bits(float32(v))) }

func bits(b uint32) *value { return keep(fmt.Sprintf("%08x", b), constant(b), !wide) }

// scalar is a kernel's i-th.
func scalar(i int) *value {
	return keep(fmt.Sprint("scalar", i), Mem{Base: reg.RDX, Disp: 4 * i}, false)
}

var constants = map[uint32]Mem{}

// constant is eight times b.
func constant(b uint32) Mem {
	if m, ok := constants[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("vec%08x", b), attr.RODATA|attr.NOPTR)
	for i := range 8 {
		DATA(4*i, U32(b))
	}
	constants[b] = m
	return m
}

// apply is a step of one instruction, which may read its last argument from memory. As with avo, that is its first
// operand.
func apply(f, spread instruction, imm []Op, args ...*value) *value {
	s := &value{args: args}
	s.lower = func(e *emitter, q int) {
		n := len(args)
		f, m := e.source(args[n-1], q, f, spread)
		ops := append([]Op{}, imm...)
		ops = append(ops, m)
		for i := n - 2; i >= 0; i-- {
			ops = append(ops, e.register(args[i], q))
		}
		e.do(f, append(ops, e.result(s, q))...)
	}
	return step(s)
}

// commuting is apply with what lies in memory last.
func commuting(f, spread instruction, a, b *value) *value {
	if a.mem != nil && b.mem == nil {
		a, b = b, a
	}
	return apply(f, spread, nil, a, b)
}

func add(a, b *value) *value { return commuting(VADDPS, VADDPS_BCST, a, b) }
func sub(a, b *value) *value { return apply(VSUBPS, VSUBPS_BCST, nil, a, b) }
func mul(a, b *value) *value { return commuting(VMULPS, VMULPS_BCST, a, b) }
func div(a, b *value) *value { return apply(VDIVPS, VDIVPS_BCST, nil, a, b) }
func sqrt(a *value) *value   { return apply(VSQRTPS, VSQRTPS_BCST, nil, a) }
func and(a, b *value) *value { return commuting(VANDPS, VANDPS_BCST, a, b) }
func or(a, b *value) *value  { return commuting(VORPS, VORPS_BCST, a, b) }
func xor(a, b *value) *value { return commuting(VXORPS, VXORPS_BCST, a, b) }

// greater and smaller are b where one of both is NaN.
func greater(a, b *value) *value { return apply(VMAXPS, VMAXPS_BCST, nil, a, b) }
func smaller(a, b *value) *value { return apply(VMINPS, VMINPS_BCST, nil, a, b) }

func abs(x *value) *value { return and(x, bits(0x7fffffff)) }

// Integers of 32 bits.
func addInts(a, b *value) *value       { return commuting(VPADDD, VPADDD_BCST, a, b) }
func subInts(a, b *value) *value       { return apply(VPSUBD, VPSUBD_BCST, nil, a, b) }
func smallerInt(a, b *value) *value    { return commuting(VPMINSD, VPMINSD_BCST, a, b) }
func greaterInt(a, b *value) *value    { return commuting(VPMAXSD, VPMAXSD_BCST, a, b) }
func smallerUint(a, b *value) *value   { return commuting(VPMINUD, VPMINUD_BCST, a, b) }
func absInt(a *value) *value           { return apply(VPABSD, nil, nil, a) }
func left(a *value, by uint64) *value  { return apply(VPSLLD, nil, []Op{Imm(by)}, a) }
func right(a *value, by uint64) *value { return apply(VPSRLD, nil, []Op{Imm(by)}, a) }
func half(a *value) *value             { return apply(VPSRAD, nil, []Op{Imm(1)}, a) }
func float(a *value) *value            { return apply(VCVTDQ2PS, nil, nil, a) }
func truncated(a *value) *value        { return apply(VCVTTPS2DQ, nil, nil, a) }
func rounded(a *value) *value          { return apply(VCVTPS2DQ, nil, nil, a) }

// integral is the nearest integer, as a float.
func integral(x *value) *value {
	if wide {
		return apply(VRNDSCALEPS, nil, []Op{Imm(0)}, x)
	}
	return apply(VROUNDPS, nil, []Op{Imm(0)}, x)
}

// fma is a·b + y, and fnma y - a·b, rounded once.
func fma(a, b, y *value) *value {
	return fused(a, b, y, VFMADD213PS, VFMADD213PS_BCST, VFMADD231PS, VFMADD231PS_BCST)
}
func fnma(a, b, y *value) *value {
	return fused(a, b, y, VFNMADD213PS, VFNMADD213PS_BCST, VFNMADD231PS, VFNMADD231PS_BCST)
}

// fused overwrites a factor, by f213, or what is added to, by f231.
func fused(a, b, y *value, f213, spread213, f231, spread231 instruction) *value {
	s := &value{args: []*value{a, b, y}}
	s.lower = func(e *emitter, q int) {
		a, b := a, b
		if e.inMemory(a) || !e.dies(a) && e.dies(b) {
			a, b = b, a // what dies or has a register is first
		}
		onto := func(v *value) reg.Register { // a register of the result, with v in it
			if e.dies(v) {
				r := e.at[place{v, q}]
				delete(e.at, place{v, q})
				e.at[place{s, q}] = r
				return r
			}
			r := e.take(false)
			e.at[place{s, q}] = r
			if e.inMemory(v) {
				e.load(v, r)
			} else {
				e.do(VMOVAPS, e.register(v, q), r)
			}
			return r
		}
		switch {
		case y.mem == nil && (e.dies(y) || e.inMemory(b)):
			x := e.register(a, q)
			f, m := e.source(b, q, f231, spread231)
			e.do(f, m, x, onto(y))
		case e.inMemory(b):
			x := e.register(a, q)
			f, m := e.source(y, q, f213, spread213)
			e.do(f, m, x, onto(b))
		default:
			x := e.register(b, q)
			f, m := e.source(y, q, f213, spread213)
			e.do(f, m, x, onto(a))
		}
	}
	return step(s)
}

// Comparisons.
const (
	equal     = 0
	less      = 1
	lessEqual = 2
	unordered = 3
)

// compare is where a and b are so.
func compare(how uint64, a, b *value) *value {
	s := apply(VCMPPS, VCMPPS_BCST, []Op{Imm(how)}, a, b)
	s.mask = true
	return s
}

// above is where integer a is greater.
func above(a, b *value) *value {
	s := apply(VPCMPGTD, VPCMPGTD_BCST, nil, a, b)
	s.mask = true
	return s
}

// negative is where x has a sign, for pick.
func negative(x *value) *value {
	if !wide {
		return x
	}
	s := apply(VPMOVD2M, nil, nil, x)
	s.mask = true
	return s
}

func either(a, b *value) *value {
	f := instruction(VORPS)
	if wide {
		f = KORW
	}
	s := apply(f, nil, nil, a, b)
	s.mask = true
	return s
}

func both(a, b *value) *value {
	f := instruction(VANDPS)
	if wide {
		f = KANDW
	}
	s := apply(f, nil, nil, a, b)
	s.mask = true
	return s
}

// pick is a where the mask is, else b.
func pick(mask, a, b *value) *value {
	s := &value{args: []*value{mask, a, b}}
	s.lower = func(e *emitter, q int) {
		k, y := e.register(mask, q), e.register(b, q)
		if wide {
			f, m := e.source(a, q, VBLENDMPS, VBLENDMPS_BCST)
			e.do(f, m, y, k, e.result(s, q))
			return
		}
		_, m := e.source(a, q, nil, nil)
		e.do(VBLENDVPS, k, m, y, e.result(s, q))
	}
	return step(s)
}

// where is x where the mask is, else 0.
func where(mask, x *value) *value {
	s := &value{args: []*value{mask, x}}
	s.lower = func(e *emitter, q int) {
		k := e.register(mask, q)
		if wide {
			e.do(VMOVAPS_Z, e.register(x, q), k, e.result(s, q))
			return
		}
		_, m := e.source(x, q, nil, nil)
		e.do(VANDPS, m, k, e.result(s, q))
	}
	return step(s)
}

// times2 is x·2ⁿ, n integral: where vectors are not wide, in two factors for the sake of very small and very large
// results.
func times2(x, n *value) *value {
	if wide {
		return apply(VSCALEFPS, nil, nil, x, n)
	}
	i := rounded(n)
	h := half(i)
	for _, part := range []*value{h, subInts(i, h)} {
		x = mul(left(addInts(part, bits(127)), 23), x)
	}
	return x
}

// entry is that of 8 whose number the last three bits of i are. The table is there twice.
func entry(table string, m Mem, i *value) *value {
	s := &value{}
	t := keep(table, m, true)
	s.args = []*value{i, t}
	s.lower = func(e *emitter, q int) {
		x := e.register(i, q)
		if wide {
			e.do(VPERMPS, e.register(t, q), x, e.result(s, q))
			return
		}
		_, from := e.source(t, q, nil, nil)
		e.do(VPERMPS, from, x, e.result(s, q))
	}
	return step(s)
}

// polynomial has the coefficients of the highest powers first.
func polynomial(x *value, coefficients ...float64) *value {
	p := c(coefficients[0])
	for _, k := range coefficients[1:] {
		p = fma(p, x, c(k))
	}
	return p
}
