package host

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

// Each rule's vector code against the rule in Go, at every length about a vector's, and no
// further.
func TestRules(t *testing.T) {
	type rule struct {
		name   string
		vector kern.Rule
		step   step[float32]
		f      []float64
		states int
	}
	rules := []rule{
		{"sgd", kern.SGD, sgd[float32], []float64{0.1, 0.01}, 0},
		{"momentum", kern.Momentum, momentum[float32], []float64{0.1, 0.01, 0.9, 0.8, 0}, 1},
		{"nesterov", kern.Nesterov, momentum[float32], []float64{0.1, 0.01, 0.9, 0.8, 1}, 1},
		{"adam", kern.Adam, adam[float32], adamNumbers([]float64{0.1, 0.01, 0.9, 0.99, 1e-6, 0.2, 0.3, 0.05}), 2},
		{"amsgrad", kern.AMSGrad, adam[float32], adamNumbers([]float64{0.1, 0.01, 0.9, 0.99, 1e-6, 0.2, 0.3, 0.05}), 3},
		{"rmsprop", kern.RMSprop, rmsprop[float32], []float64{0.1, 0.01, 0.9, 0.1, 1e-6, 0, 0}, 1},
		{"rmsprop, momentum", kern.RMSpropMomentum, rmsprop[float32], []float64{0.1, 0.01, 0.9, 0.1, 1e-6, 0.7, 0}, 2},
		{"rmsprop, centered", kern.RMSpropCentered, rmsprop[float32], []float64{0.1, 0.01, 0.9, 0.1, 1e-6, 0, 1}, 2},
		{"rmsprop, both", kern.RMSpropCenteredMomentum, rmsprop[float32], []float64{0.1, 0.01, 0.9, 0.1, 1e-6, 0.7, 1}, 3},
		{"adagrad", kern.Adagrad, adagrad[float32], []float64{0.1, 0.01, 1e-6}, 1},
		{"adadelta", kern.Adadelta, adadelta[float32], []float64{0.1, 0.01, 0.9, 0.1, 1e-6}, 2},
		{"nadam", kern.NAdam, nadam[float32], []float64{0.1, 0.01, 0.1, 0.99, 0.01, 1e-6, 0.2, 1.5}, 2},
		{"adamax", kern.Adamax, adamax[float32], []float64{0.1, 0.01, 0.1, 0.99, 1e-6}, 2},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, rule := range rules {
		c := newNumbers[float32](rule.f, 0.7)
		for n := range 40 {
			v := make([][]float32, 5) // weights, gradient, states
			for i := range 2 + rule.states {
				for range n {
					x := r.NormFloat64()
					if i >= 2 && rule.name != "momentum" && rule.name != "nesterov" {
						x = math.Abs(x) + 2 // a mean's square is less than the mean square
					}
					v[i] = append(v[i], float32(x))
				}
				v[i] = append(v[i], 77)
			}
			if rule.name == "rmsprop, centered" || rule.name == "rmsprop, both" {
				for j := range n { // the mean
					v[1+rule.states][j] /= 10
				}
			}
			want := make([][]float32, 5)
			for i := range v {
				want[i] = slices.Clone(v[i])
			}
			if rule.states == 0 {
				rule.step(&c, want[0][:n], want[1][:n], nil)
			} else {
				var s states[float32]
				for i := range rule.states {
					s[i] = want[2+i][:n]
				}
				rule.step(&c, want[0][:n], want[1][:n], &s)
			}
			if !rule.vector.Run(v[0][:n], v[1], v[2], v[3], v[4], c[:]) {
				t.Skip("no vector code")
			}
			for i := range v {
				for j := range v[i] {
					if !(math.Abs(float64(v[i][j]-want[i][j])) <= 1e-6*(1+math.Abs(float64(want[i][j])))) {
						t.Fatalf("%s, operand %d: element %d of %d is %v, want %v", rule.name, i, j, n, v[i][j], want[i][j])
					}
				}
			}
		}
	}
}

// Several parameters at once get the bits that each gets alone.
func TestGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	array := func(d driver.DType, n int) driver.Array {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Abs(r.NormFloat64()))
		}
		a := driver.Array{Type: d, Shape: []int{n}, Strides: []int{1}, Data: make([]byte, n*d.Size())}
		from := driver.Array{Type: driver.Float32, Shape: a.Shape, Strides: a.Strides, Data: driver.Bytes(v)}
		k, err := driver.Find("cast", driver.Float32, backend)
		if err != nil {
			t.Fatal(err)
		}
		k.Run(&driver.Args{In: []driver.Array{from}, Out: []driver.Array{a}})
		return a
	}
	clone := func(a *driver.Args) *driver.Args {
		b := *a
		b.Out = slices.Clone(a.Out)
		for i := range b.Out {
			b.Out[i].Data = slices.Clone(b.Out[i].Data)
		}
		return &b
	}
	lengths := []int{3, 0, 1, grain, 77, 2*grain + 5, 0, 9}
	for _, dtype := range []driver.DType{driver.Float32, driver.Float64, driver.BFloat16, driver.Float16} {
		for name, states := range map[string]int{"sgd": 0, "adam": 2, "square sum": -1} {
			k, err := driver.Find(name, dtype, backend)
			if err != nil {
				t.Fatal(err)
			}
			for _, threads := range []int{1, 4} {
				var alone, all []*driver.Args
				for i, n := range lengths {
					a := &driver.Args{
						Threads: threads, Scale: 0.7, Key: [3]uint64{uint64(i), 5}, In: []driver.Array{array(dtype, n)},
						F: []float64{0.1 * float64(i), 0.01, 0.9, 0.99, 1e-6, 0.2, 0.3, 0.05},
					}
					if states < 0 {
						a.Out = []driver.Array{array(driver.Float64, 1)}
					}
					for i := range 1 + states {
						d := dtype
						if i > 0 && dtype.Half() {
							d = driver.BFloat16
						}
						a.Out = append(a.Out, array(d, n))
					}
					alone, all = append(alone, clone(a)), append(all, clone(a))
					k.Run(alone[i])
				}
				k.Group(all)
				for i, a := range all {
					for j := range a.Out {
						if !bytes.Equal(a.Out[j].Data, alone[i].Out[j].Data) {
							t.Errorf("%s of %s, %d elements, %d threads: other bits of output %d", name, dtype, lengths[i], threads, j)
						}
					}
				}
			}
		}
	}
}
