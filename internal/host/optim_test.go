package host

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

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
		c := newNumbers[float32](rule.f)
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
