// Package optest tests an operation, one of ours or a user's: reference values, its
// gradient against differences in float64, recomputation, every type of float, views,
// threads, dry runs, and a failure of each allocation. One call of Run does it all:
//
//	optest.Run(t, optest.Op{
//		Name:   "gelu",
//		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].GELU() },
//		Shapes: optest.Unary,
//	})
package optest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/snug-ml/snug"
)

// Op is an operation with what its test has to know.
type Op struct {
	Name   string
	F      func(x ...*snug.Tensor) *snug.Tensor
	Shapes [][][]int // sets of one shape an input: small ones, with 0, 1 and broadcasting
	Large  [][]int   // one set more, for threads to share: 2¹⁵ elements or more
	Inputs []Input   // what is in each; those that are missing are zero Inputs

	Reference *Reference
	InPlace   bool // F writes its first input: it gets a copy
	Constant  bool // no gradient passes, though the result is a float
	Wide      bool // not for the 16-bit floats
}

// Input is what an input's elements are: normal numbers for the zero Input.
type Input struct {
	Draw     func(r *rand.Rand) float64
	DType    snug.DType // of integers and bools; the floats all take their turn
	Constant bool       // no gradient is wanted
}

// Uniform numbers lie between two.
func Uniform(from, to float64) Input {
	return Input{Draw: func(r *rand.Rand) float64 { return from + (to-from)*r.Float64() }}
}

// Away from kinks, by a tenth at least, are normal numbers here.
func Away(kinks ...float64) Input {
	return Input{Draw: func(r *rand.Rand) float64 {
		for {
			x, near := 2*r.NormFloat64(), false
			for _, k := range kinks {
				near = near || math.Abs(x-k) < 0.1
			}
			if !near {
				return x
			}
		}
	}}
}

// Below are integers from 0 to n-1: indices and classes.
func Below(n int) Input {
	return Input{DType: snug.Int64, Draw: func(r *rand.Rand) float64 { return float64(r.IntN(n)) }}
}

// Unary and Binary are sets of shapes for operations that go element by element.
var (
	Unary  = [][][]int{{{3, 4, 2}}, {{7}}, {{}}, {{1, 1}}, {{2, 0}}}
	Binary = [][][]int{{{3, 4}, {3, 4}}, {{2, 3, 1, 2}, {4, 1}}, {{3}, {2, 3}}, {{}, {2}}, {{2, 1}, {}}, {{1}, {1}}, {{2, 0}, {1}}, {{0}, {1, 0}}}
)

// Reference is what the operation has to give in float32: for Inputs the Output, and for
// Fed, the gradient of that, the Gradients. Arrays without values are not compared.
type Reference struct {
	Inputs, Gradients []Array
	Output, Fed       Array
	Tolerance         float64 // of ‖a−b‖ against 1+‖b‖; 0 is 1e-5
}

// Array has row-major values of any type.
type Array struct {
	Shape  []int
	Values []float64
}

// Run tests op.
func Run(t *testing.T, op Op) {
	t.Run(op.Name, func(t *testing.T) {
		t.Helper()
		if op.Reference != nil {
			t.Run("reference", func(t *testing.T) { (&checks{t, &op}).reference() })
		}
		for _, set := range op.Shapes {
			t.Run(fmt.Sprint(set), func(t *testing.T) { (&checks{t, &op}).all(set) })
		}
		if op.Large != nil {
			t.Run("threads", func(t *testing.T) { (&checks{t, &op}).threads(op.Large) })
		}
		if op.Reference == nil && len(op.Shapes) == 0 && op.Large == nil {
			t.Error("no shapes and no reference: nothing was tested")
		}
	})
}

// draw fills shapes with the operation's kind of values; the same ones each time.
func (op *Op) draw(shapes [][]int) []Array {
	r := rand.New(rand.NewPCG(1, 2))
	in := make([]Array, len(shapes))
	for i, shape := range shapes {
		n := 1
		for _, d := range shape {
			n *= d
		}
		in[i] = Array{shape, make([]float64, n)}
		next := op.input(i).Draw
		if next == nil {
			next = (*rand.Rand).NormFloat64
		}
		for k := range in[i].Values {
			in[i].Values[k] = float64(float32(next(r)))
		}
	}
	return in
}

func (op *Op) input(i int) Input {
	if i < len(op.Inputs) {
		return op.Inputs[i]
	}
	return Input{}
}
