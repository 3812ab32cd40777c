package optim_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
)

// The values are those of testdata/adafactor.py, which is written from the paper.
func TestAdafactor(t *testing.T) {
	var cases map[string]struct {
		Shape       []int
		LR          float64
		Relative    bool
		WeightDecay float64 `json:"weight_decay"`
		W0          []float64
		Grads       [][]float64
		Weights     [][]float64
	}
	b, err := os.ReadFile("testdata/adafactor.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) != 6 {
		t.Fatal(len(cases), err)
	}
	for name, c := range cases {
		for dtype, tol := range map[snug.DType]float64{snug.Float64: 1e-12, snug.Float32: 1e-6, snug.Float16: 0.002, snug.BFloat16: 0.005} {
			t.Run(name+" "+dtype.String(), func(t *testing.T) {
				d, p := open(t), snug.NewParam(snug.Values(c.W0), c.Shape...)
				p.SetDType(dtype)
				if err := nn.Init(t.Context(), d, &struct{ W *snug.Param }{p}, nil); err != nil {
					t.Fatal(err)
				}
				if err := snug.SetParam(p, c.W0); err != nil {
					t.Fatal(err)
				}
				config := optim.DefaultAdafactor()
				config.LR, config.Relative, config.WeightDecay = c.LR, c.Relative, c.WeightDecay
				o := must(optim.NewAdafactor(one("w", p), config))
				for i, g := range c.Grads {
					push(t, p, g)
					if err := o.Step(); err != nil {
						t.Fatal(err)
					}
					if got := get(t, p); !near(got, c.Weights[i], tol) {
						t.Fatalf("step %d:\n%v, want\n%v", i, got, c.Weights[i])
					}
				}
			})
		}
	}
}

// adafactorStep is the paper's algorithm on a whole matrix.
func adafactorStep(x, g []float64, rows, cols int, r, c []float64, t int, rate float64) {
	beta2 := 1 - math.Pow(float64(t), -0.8)
	rowSum, colSum := make([]float64, rows), make([]float64, cols)
	var size float64
	for i, g := range g {
		rowSum[i/cols] += g*g + 1e-30
		colSum[i%cols] += g*g + 1e-30
		size += x[i] * x[i]
	}
	var total float64
	for i := range r {
		r[i] = beta2*r[i] + (1-beta2)*rowSum[i]
		total += r[i]
	}
	for j := range c {
		c[j] = beta2*c[j] + (1-beta2)*colSum[j]
	}
	u := make([]float64, len(g))
	var change float64
	for i, g := range g {
		u[i] = g / math.Sqrt(r[i/cols]*c[i%cols]/total)
		change += u[i] * u[i]
	}
	n := float64(len(g))
	step := rate * max(1e-3, math.Sqrt(size/n)) / max(1, math.Sqrt(change/n))
	for i := range x {
		x[i] -= step * u[i]
	}
}

// Matrices of many tiles, whose last ones are smaller, give what whole ones do.
func TestAdafactorTiles(t *testing.T) {
	for _, shape := range [][]int{{300, 1100}, {2, 5000}, {1025, 3}, {20, 3, 7, 9}} {
		d, p := open(t), snug.NewParam(snug.Uniform(1), shape...)
		p.SetDType(snug.Float64)
		if err := nn.Init(t.Context(), d, p, snug.NewRand(1)); err != nil {
			t.Fatal(err)
		}
		o := must(optim.NewAdafactor(one("w", p), optim.DefaultAdafactor()))
		rows, cols := shape[0], p.Len()/shape[0]
		want, r, c := get(t, p), make([]float64, rows), make([]float64, cols)
		random := rand.New(rand.NewPCG(1, 2))
		g := make([]float64, p.Len())
		for step := 1; step <= 3; step++ {
			for i := range g {
				g[i] = random.NormFloat64() * float64(1+i%cols%5)
			}
			push(t, p, g)
			if err := o.Step(); err != nil {
				t.Fatal(err)
			}
			adafactorStep(want, g, rows, cols, r, c, step, 1e-2)
			if got := get(t, p); !near(got, want, 1e-12) {
				t.Fatal(shape, step)
			}
		}
	}
}
