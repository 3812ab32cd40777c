package optest_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/optest"
)

// faulty are operations with one fault each, and what the test of it says.
var faulty = []struct {
	says string
	op   optest.Op
}{
	{"by differences", optest.Op{F: func(x ...*snug.Tensor) *snug.Tensor { return snug.Apply(&wrongGradient, x[0]) }}},
	{"changed its input", optest.Op{Constant: true, F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].MulScalarInPlace(2) }}},
	{"float32 against float64", optest.Op{F: twiceFor(snug.Float32)}},
	{"bfloat16", optest.Op{F: twiceFor(snug.BFloat16)}},
	{"float16", optest.Op{F: twiceFor(snug.Float16)}},
	{"a dry run's memory differs", optest.Op{F: func(x ...*snug.Tensor) *snug.Tensor {
		if _, err := x[0].Sum().Item(); errors.Is(err, snug.ErrNoValues) {
			snug.Zeros(x[0].Scope(), snug.Float32, 1000)
		}
		return x[0].Square()
	}}},
	{"no gradient of input 1", optest.Op{Shapes: optest.Binary, F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].Add(x[1].Detach()) }}},
	{"reference", optest.Op{
		F: func(x ...*snug.Tensor) *snug.Tensor { return x[0].Square() },
		Reference: &optest.Reference{
			Inputs: []optest.Array{{Shape: []int{1}, Values: []float64{3}}},
			Output: optest.Array{Shape: []int{1}, Values: []float64{9.001}},
		},
	}},
	{"nothing was tested", optest.Op{Shapes: [][][]int{}, F: func(x ...*snug.Tensor) *snug.Tensor { return x[0] }}},
	{"recomputed", optest.Op{F: changing()}},
}

var wrongGradient = snug.Op{
	Name:     "double",
	Forward:  func(c *snug.Call, in ...*snug.Tensor) *snug.Tensor { return in[0].MulScalar(2) },
	Backward: func(c *snug.Call, dy *snug.Tensor) []*snug.Tensor { return []*snug.Tensor{dy} },
}

func twiceFor(dtype snug.DType) func(x ...*snug.Tensor) *snug.Tensor {
	return func(x ...*snug.Tensor) *snug.Tensor {
		if x[0].DType() == dtype {
			return x[0].MulScalar(2)
		}
		return x[0].MulScalar(1)
	}
}

// changing gives another gradient each time it runs in float32.
func changing() func(x ...*snug.Tensor) *snug.Tensor {
	factor := 0.001
	return func(x ...*snug.Tensor) *snug.Tensor {
		if x[0].DType() != snug.Float32 {
			return x[0].MulScalar(0)
		}
		factor *= -1.001 // near enough to 0 for float32 against float64
		return x[0].MulScalar(factor * 1e-3)
	}
}

// Run finds each fault: the test of it, which is run in another process, fails.
func TestFaults(t *testing.T) {
	for i, c := range faulty {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFaulty$")
		cmd.Env = append(os.Environ(), "OPTEST_FAULT="+c.says)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("fault %d (%s): %v\n%s", i, c.says, err, out)
		}
	}
}

func TestFaulty(t *testing.T) {
	for _, c := range faulty {
		if c.says == os.Getenv("OPTEST_FAULT") {
			if c.op.Shapes == nil && c.op.Reference == nil {
				c.op.Shapes = optest.Unary
			}
			c.op.Name = "faulty"
			optest.Run(t, c.op)
		}
	}
}
