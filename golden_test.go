package snug_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	values "github.com/snug-ml/snug/internal/golden"
	"github.com/snug-ml/snug/optest"
)

// golden is a case of PyTorch's values as optest takes it: inputs in order, then the
// parameters in theirs.
func golden(t testing.TB, family, name string) *optest.Reference {
	t.Helper()
	f := values.Load(t, family)
	array := func(role string) optest.Array {
		a, ok := f.Tensor(name, role)
		if !ok {
			return optest.Array{}
		}
		v := a.F
		for _, n := range a.I {
			v = append(v, float64(n))
		}
		return optest.Array{Shape: a.Shape, Values: v}
	}
	r := &optest.Reference{Output: array("out0"), Fed: array("g")}
	var params []string
	for _, role := range f.Roles(name) {
		if strings.HasPrefix(role, "w.") {
			params = append(params, role)
		}
	}
	for i := 0; ; i++ {
		in := array(fmt.Sprintf("in%d", i))
		if in.Shape == nil {
			break
		}
		r.Inputs = append(r.Inputs, in)
		r.Gradients = append(r.Gradients, array(fmt.Sprintf("gin%d", i)))
	}
	for _, p := range params {
		r.Inputs = append(r.Inputs, array(p))
		r.Gradients = append(r.Gradients, array("g"+p))
	}
	if len(r.Inputs) == 0 || len(r.Output.Values) == 0 {
		t.Fatalf("no case %q in %s", name, family)
	}
	return r
}

// one and two make a method an operation for optest.
func one(f func(x *snug.Tensor) *snug.Tensor) func(...*snug.Tensor) *snug.Tensor {
	return func(x ...*snug.Tensor) *snug.Tensor { return f(x[0]) }
}

func two(f func(x *snug.Tensor, y snug.Operand) *snug.Tensor) func(...*snug.Tensor) *snug.Tensor {
	return func(x ...*snug.Tensor) *snug.Tensor { return f(x[0], x[1]) }
}
