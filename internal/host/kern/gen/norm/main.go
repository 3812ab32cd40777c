// Command norm writes the assembly of the kernels of normalizations. They work on planes of equal length, one after the
// other, each of a channel of its own, whose numbers are in a table.
package main

import (
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!race")
	rows()
	sums()
	Generate()
}

// What the table has of a channel, in this order.
const (
	mean = iota
	scale
	shift
	low
	high
	p
	q
	numbers // so many
)

var (
	at, n, tail      = reg.RAX, reg.RCX, reg.RBX
	channel, totals  = reg.RDX, reg.R10
	planes, elements = reg.R11, reg.R12 // of one plane
	early            = reg.R13          // the element that is asked for, ahead of that at hand
	places           = []reg.GPPhysical{reg.RSI, reg.RDI, reg.R8, reg.R9}
	tails            = []reg.Register{reg.K4, reg.K5, reg.K6, reg.K7} // the elements that there are of the last vectors
)

// A kernel is written for both widths of vectors.
type kernel struct {
	name, rows    string // of elements, those that are written first
	sums, ahead   bool   // it adds to sums; what it reads, and writes, is asked for ahead
	lanes         int    // elements in a vector, as they are read
	vectors       int    // at a time
	begin         func(k *kernel)
	body          func(k *kernel, v *vector)
	end           func(k *kernel)
	past          bool // stores go past the caches, where n is negative: planes are whole cache lines then
	wide          bool // vectors of AVX-512
	scalars, temp []reg.VecPhysical
}

// vector is one of those that a body works on in turns.
type vector struct {
	*kernel
	i    int
	last bool // some of its elements may be missing
}

func (k *kernel) write() {
	names := strings.Fields(k.rows)
	signature := "func(planes, n int, " + strings.Join(names, ", ") + ", channels *float32"
	if k.sums {
		signature += ", totals *float64"
	}
	if k.ahead {
		signature += ", ahead int"
	}
	TEXT(k.name, NOSPLIT, signature+")")
	Pragma("noescape")
	Doc(k.name + " is a kernel of planes.")
	Load(Param("planes"), planes)
	Load(Param("n"), elements)
	for i, r := range names {
		Load(Param(r), places[i])
	}
	Load(Param("channels"), channel)
	if k.sums {
		Load(Param("totals"), totals)
	}
	if k.ahead {
		Load(Param("ahead"), early)
	}
	XORQ(at, at)
	cached := *k
	cached.past = false
	if k.past {
		TESTQ(elements, elements)
		JLT(LabelRef("past"))
	}
	cached.widths(len(names))
	if k.past {
		Label("past")
		NEGQ(elements)
		k.widths(len(names))
	}
}

func (k *kernel) widths(rows int) {
	w := *k
	w.wide, w.lanes = true, 2*k.lanes
	CMPQ(NewDataAddr(Symbol{Name: "·level"}, 0), Imm(2)) // avx512
	JGE(LabelRef(k.label("wide")))
	k.code(rows)
	Label(k.label("wide"))
	w.code(rows)
}

func (k *kernel) label(name string) string {
	if k.wide {
		name = "wide_" + name
	}
	if k.past {
		name = "past_" + name
	}
	return name
}

func (k *kernel) code(rows int) {
	label := k.label
	step := uint64(k.lanes * k.vectors)
	body := func(last bool) {
		for i := range k.vectors {
			if k.ahead && 4*k.lanes*i%64 == 0 {
				for _, r := range places[:rows] {
					PREFETCHT0(Mem{Base: r, Index: early, Scale: 4, Disp: 4 * k.lanes * i})
				}
			}
			k.body(k, &vector{k, i, last})
		}
	}
	Label(label("plane"))
	MOVQ(elements, n)
	k.begin(k)
	SUBQ(Imm(step), n)
	JL(LabelRef(label("rest")))
	Label(label("loop"))
	body(false)
	ADDQ(Imm(step), at)
	if k.ahead {
		ADDQ(Imm(step), early)
	}
	SUBQ(Imm(step), n)
	JGE(LabelRef(label("loop")))
	Label(label("rest"))
	ADDQ(Imm(step), n)
	JE(LabelRef(label("next")))
	if k.wide { // so many bits
		MOVL(I32(-1), tail.As32())
		BZHIL(n.As32(), tail.As32(), tail.As32())
		for i := range k.vectors {
			if i > 0 {
				SHRL(Imm(uint64(k.lanes)), tail.As32())
			}
			KMOVW(tail.As32(), tails[i])
		}
	} else {
		LEAQ(tailMask(), tail)
		SHLQ(Imm(2), n)
		SUBQ(n, tail)
		SHRQ(Imm(2), n)
	}
	body(true)
	ADDQ(n, at)
	if k.ahead {
		ADDQ(n, early)
	}
	Label(label("next"))
	k.end(k)
	ADDQ(Imm(4*numbers), channel)
	DECQ(planes)
	JNE(LabelRef(label("plane")))
	if k.past {
		SFENCE() // before anybody is told that they are written
	}
	VZEROUPPER()
	RET()
}

var tailMasks Mem

// tailMask is where 16 lanes end that there are, and as many begin that there are not.
func tailMask() Mem {
	if tailMasks.Base == nil {
		tailMasks = GLOBL("normTail", attr.RODATA|attr.NOPTR)
		for i := range 32 {
			DATA(4*i, I32(i/16-1))
		}
	}
	return tailMasks.Offset(64)
}

// spread loads numbers of the channel.
func (k *kernel) spread(numbers ...int) {
	for _, i := range numbers {
		VBROADCASTSS(Mem{Base: channel, Disp: 4 * i}, k.scalars[i])
	}
}

func (v *vector) mem(row int) Mem {
	return Mem{Base: places[row], Index: at, Scale: 4, Disp: 4 * v.lanes * v.i}
}

// mask loads what elements there are.
func (v *vector) mask(r reg.Register) {
	VMOVUPS(Mem{Base: tail, Disp: 4 * v.lanes * v.i}, r)
}

// load is of a row; what is missing is 0.
func (v *vector) load(row int, r reg.VecPhysical) {
	switch {
	case !v.last:
		VMOVUPS(v.mem(row), r)
	case v.wide:
		VMOVUPS_Z(v.mem(row), tails[v.i], r)
	default:
		v.mask(r)
		VMASKMOVPS(v.mem(row), r, r)
	}
}

// store needs a register for a mask.
func (v *vector) store(r reg.VecPhysical, row int, mask reg.VecPhysical) {
	switch {
	case !v.last && v.past:
		VMOVNTPS(r, v.mem(row))
	case !v.last:
		VMOVUPS(r, v.mem(row))
	case v.wide:
		VMOVUPS(r, tails[v.i], v.mem(row))
	default:
		v.mask(mask)
		VMASKMOVPS(r, mask, v.mem(row))
	}
}

// passing loads elements of the row where x is above low and below high, else 0. It makes use of x.
func (v *vector) passing(row int, x, dst reg.VecPhysical) {
	if v.wide {
		VCMPPS(Imm(less), x, v.scalars[low], reg.K1)
		VCMPPS(Imm(less), v.scalars[high], x, reg.K1, reg.K1)
		if v.last {
			KANDW(tails[v.i], reg.K1, reg.K1)
		}
		VMOVUPS_Z(v.mem(row), reg.K1, dst)
		return
	}
	VCMPPS(Imm(less), x, v.scalars[low], dst)
	VCMPPS(Imm(less), v.scalars[high], x, x)
	VANDPS(x, dst, x)
	v.load(row, dst)
	VANDPS(x, dst, dst)
}

const less = 1 // of comparisons

var xmm = []reg.VecPhysical{reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7,
	reg.X8, reg.X9, reg.X10, reg.X11, reg.X12, reg.X13, reg.X14, reg.X15}

var ymm = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}

var zmm = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15}
