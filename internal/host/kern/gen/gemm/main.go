// Command gemm writes the assembly of the kernels of matrix multiplication.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!race")
	for _, t := range []elem{single, double} {
		for _, v := range []variant{{2, false}, {2, true}, {1, true}} {
			for mr := 1; mr <= 6; mr++ {
				gemm(t, mr, v)
			}
		}
	}
	for _, v := range []variant{{2, false}, {2, true}, {1, true}} {
		copyRows(v)
	}
	for _, t := range []elem{single, double, pair} {
		for mr := 1; mr <= 14; mr++ {
			tile512(t, mr, 1)
			tile512(t, mr, 2)
		}
		for mr := 1; mr <= 4 && !t.rounds; mr++ {
			tile512(t, mr, 6)
		}
	}
	for _, f := range formats {
		copy512(f, 1)
		copy512(f, 2)
		if f.rows == 1 { // pairs of neighbours are packed as float32 are
			columns512(f)
		}
	}
	for mr := 1; mr <= 4; mr++ {
		dots512(mr)
	}
	Generate()
}

// Ymm are the sixteen vector registers: each holds 8 float32 or 4 float64.
var ymm = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}

const lanes = 32 // bytes of a vector

// An elem is what differs between float32 and float64.
type elem struct {
	name, goType                    string
	broadcast, move, fma, add, mask func(ops ...Op)
	maskz                           func(m, k, dst Op)
	rounds                          bool // what is stored may be bfloat16
}

func three(f func(a, b, c Op)) func(...Op) { return func(o ...Op) { f(o[0], o[1], o[2]) } }

var (
	single = elem{"F32", "float32", VBROADCASTSS, VMOVUPS, VFMADD231PS, VADDPS, three(VMASKMOVPS), VMOVUPS_Z, false}
	double = elem{"F64", "float64", VBROADCASTSD, VMOVUPD, VFMADD231PD, VADDPD, three(VMASKMOVPD), VMOVUPD_Z, false}
	pair   = elem{"B16", "float32", VBROADCASTSS, VMOVUPS, dot, VADDPS, nil, VMOVUPS_Z, true} // two bfloat16, sums of float32
)

// at is the address of row i of at most six, given the rows 0 and 3 and the distance of two rows.
func at(row0, row3, stride reg.GPPhysical, i int) Mem {
	base := row0
	if i >= 3 {
		base = row3
	}
	switch i % 3 {
	case 1:
		return Mem{Base: base, Index: stride, Scale: 1}
	case 2:
		return Mem{Base: base, Index: stride, Scale: 2}
	}
	return Mem{Base: base}
}

// each runs body k times, four times a turn while it can.
func each(k reg.GPPhysical, body func()) {
	SUBQ(Imm(4), k)
	JL(LabelRef("rest"))
	Label("loop")
	for range 4 {
		body()
	}
	SUBQ(Imm(4), k)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(4), k)
	JE(LabelRef("done"))
	Label("single")
	body()
	DECQ(k)
	JNE(LabelRef("single"))
	Label("done")
}
