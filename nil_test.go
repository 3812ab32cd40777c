package snug_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
)

// An operand that is nil is an error that says which one of which operation; a bias may be
// left out.
func TestNilOperands(t *testing.T) {
	d := open(t)
	check := func(name string, call func(x *snug.Tensor)) {
		t.Helper()
		err := d.Train(bg, func(s *snug.Scope) error { call(ramp(s, 4, 8)); return nil })
		if err == nil || !strings.Contains(err.Error(), " is nil, at nil_test.go:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	operand, tensor := reflect.TypeFor[snug.Operand](), reflect.TypeFor[*snug.Tensor]()
	biased := regexp.MustCompile("^(Linear|Conv)") // their last operand may be left out
	methods := 0
	for m := range reflect.TypeFor[*snug.Tensor]().Methods() {
		for k := 1; k < m.Type.NumIn(); k++ {
			if in := m.Type.In(k); in != operand && in != tensor {
				continue
			}
			methods++
			for _, missing := range []reflect.Value{reflect.Zero(m.Type.In(k)), reflect.ValueOf((*snug.Param)(nil))} {
				if m.Type.In(k) == tensor && missing.Type() != tensor || k == 2 && missing.Type() == operand && biased.MatchString(m.Name) {
					continue
				}
				check(m.Name, func(x *snug.Tensor) {
					in := []reflect.Value{reflect.ValueOf(x)}
					for i := 1; i < m.Type.NumIn(); i++ {
						switch of := m.Type.In(i); {
						case i == k:
							in = append(in, missing)
						case of == operand || of == tensor:
							in = append(in, reflect.ValueOf(x))
						default:
							in = append(in, reflect.Zero(of))
						}
					}
					m.Func.Call(in)
				})
			}
		}
	}
	if methods < 30 {
		t.Errorf("%d operands were tried", methods)
	}
	var p *snug.Param
	for name, call := range map[string]func(x *snug.Tensor){
		"cat":                  func(x *snug.Tensor) { snug.Cat(0, x, nil) },
		"stack":                func(x *snug.Tensor) { snug.Stack(0, nil, x) },
		"where":                func(x *snug.Tensor) { snug.Where(nil, x, x) },
		"embedding":            func(x *snug.Tensor) { snug.Embedding(p, x, -1) },
		"attention":            func(x *snug.Tensor) { snug.Attention(x, p, x, false) },
		"map":                  func(x *snug.Tensor) { snug.Map[float32](x.Scope(), "map", nil, nil, nil, x) },
		"cross entropy":        func(x *snug.Tensor) { nn.CrossEntropy(x, nil) },
		"nll":                  func(x *snug.Tensor) { nn.NLL(nil, x) },
		"correct":              func(x *snug.Tensor) { nn.Correct(x, nil) },
		"mse":                  func(x *snug.Tensor) { nn.MSE(nil, x) },
		"linear cross entropy": func(x *snug.Tensor) { nn.DefaultLinearCrossEntropy().Loss(x, p, nil, x) },
	} {
		check(name, call)
	}
	check("linear of a model that lacks a weight", func(x *snug.Tensor) { (&nn.Linear{}).Forward(x) })
	if err := d.Infer(bg, func(s *snug.Scope) error {
		x := ramp(s, 4, 4)
		_, err := snug.Download[float32](x.Linear(x, nil))
		return err
	}); err != nil {
		t.Error(err)
	}
}
