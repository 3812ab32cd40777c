package optim

import (
	"fmt"
	"iter"
	"math"

	"github.com/snug-ml/snug"
)

// AdamConfig is of Adam (Kingma and Ba, 2015); WeightDecay is added to the gradient. With
// AMSGrad the largest second moment so far divides (Reddi et al., 2018).
type AdamConfig struct {
	LR          float64    `json:"lr"`
	Beta1       float64    `json:"beta1"`
	Beta2       float64    `json:"beta2"`
	Eps         float64    `json:"eps"`
	WeightDecay float64    `json:"weight_decay"`
	AMSGrad     bool       `json:"amsgrad"`
	StateDType  snug.DType `json:"state_dtype"` // Float32, BFloat16 or Uint8
	Rounding    Rounding   `json:"rounding"`
}

func DefaultAdam() AdamConfig { return AdamConfig{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8} }

// NewAdam needs the state of NewAdamW.
func NewAdam(p iter.Seq2[string, *snug.Param], c AdamConfig, g ...Group) (Optimizer, error) {
	return newAdam("adam", p, c, false, g)
}

// AdamWConfig is of Adam with the decay taken from the weights and not put into the
// gradient (Loshchilov and Hutter, 2019).
type AdamWConfig struct {
	LR          float64    `json:"lr"`
	Beta1       float64    `json:"beta1"`
	Beta2       float64    `json:"beta2"`
	Eps         float64    `json:"eps"`
	WeightDecay float64    `json:"weight_decay"`
	AMSGrad     bool       `json:"amsgrad"`
	StateDType  snug.DType `json:"state_dtype"` // Float32, BFloat16 or Uint8
	Rounding    Rounding   `json:"rounding"`
}

func DefaultAdamW() AdamWConfig {
	return AdamWConfig{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 1e-2}
}

// NewAdamW needs two states as large as the parameters, three with AMSGrad: 8 bytes a
// parameter, or 12. A StateDType of BFloat16 halves that; the second moment changes by
// less than such a number can show, so it wants stochastic rounding. Uint8 is for 8-bit
// Adam (Dettmers et al., 2022), 2.03 bytes a parameter, without AMSGrad; arithmetic is in
// float32 in each. Float32 is Float64 beside float64 parameters.
func NewAdamW(p iter.Seq2[string, *snug.Param], c AdamWConfig, g ...Group) (Optimizer, error) {
	return newAdam("adamw", p, AdamConfig(c), true, g)
}

func newAdam(name string, p iter.Seq2[string, *snug.Param], c AdamConfig, decoupled bool, g []Group) (Optimizer, error) {
	states := []string{"exp_avg", "exp_avg_sq"}
	if c.AMSGrad {
		states = append(states, "max_exp_avg_sq")
	}
	if err := stateDType(name, c.StateDType, snug.Float32, snug.BFloat16, snug.Uint8); err != nil {
		return nil, err
	}
	r := rule{
		name: name, kernel: "adam", states: states, dtype: c.StateDType, rounding: c.Rounding, lr: c.LR, decay: c.WeightDecay, groups: g,
		fractions: map[string]float64{"Beta1": c.Beta1, "Beta2": c.Beta2}, aboveZero: map[string]float64{"Eps": c.Eps},
		args: func(o *base, lr, decay float64) []float64 {
			t := float64(o.steps)
			f := []float64{lr, decay, c.Beta1, c.Beta2, c.Eps, 1 - math.Pow(c.Beta1, t), 1 - math.Pow(c.Beta2, t), 0}
			if decoupled {
				f[1], f[7] = 0, decay
			}
			return f
		},
	}
	if c.StateDType == snug.Uint8 {
		if c.AMSGrad {
			return nil, fmt.Errorf("%s: AMSGrad has no form in 8 bits", name)
		}
		r.layout = adam8bit
	}
	return wrap(newBase(p, r))
}

// NAdamConfig is of Adam with Nesterov's momentum (Dozat, 2016).
type NAdamConfig struct {
	LR            float64 `json:"lr"`
	Beta1         float64 `json:"beta1"`
	Beta2         float64 `json:"beta2"`
	Eps           float64 `json:"eps"`
	WeightDecay   float64 `json:"weight_decay"`
	MomentumDecay float64 `json:"momentum_decay"`
}

func DefaultNAdam() NAdamConfig {
	return NAdamConfig{LR: 2e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, MomentumDecay: 4e-3}
}

// NewNAdam needs two states as large as the parameters. It is that of PyTorch 1.13, which
// has μₜ twice in the divisor of the mean, 1 − μₜ·∏μ; the paper has 1 − ∏μ.
func NewNAdam(p iter.Seq2[string, *snug.Param], c NAdamConfig, g ...Group) (Optimizer, error) {
	momentum := func(t int64) float64 { return c.Beta1 * (1 - 0.5*math.Pow(0.96, float64(t)*c.MomentumDecay)) }
	product, upTo := 1.0, int64(0) // of the momenta so far; a function of the step
	return wrap(newBase(p, rule{
		name: "nadam", kernel: "nadam", states: []string{"exp_avg", "exp_avg_sq"}, lr: c.LR, decay: c.WeightDecay, groups: g,
		fractions: map[string]float64{"Beta1": c.Beta1, "Beta2": c.Beta2}, aboveZero: map[string]float64{"Eps": c.Eps},
		notBelow0: map[string]float64{"MomentumDecay": c.MomentumDecay},
		args: func(o *base, lr, decay float64) []float64 {
			if upTo > o.steps {
				product, upTo = 1, 0
			}
			for upTo < o.steps {
				upTo++
				product *= momentum(upTo)
			}
			now, next := momentum(o.steps), momentum(o.steps+1)
			return []float64{lr * (1 - now) / (1 - product), decay, c.Beta1, c.Beta2, c.Eps,
				lr * next / (1 - product*now*next), 1 - math.Pow(c.Beta2, float64(o.steps))}
		},
	}))
}

// AdamaxConfig is of Adam with the largest gradient in place of the second moment
// (Kingma and Ba, 2015).
type AdamaxConfig struct {
	LR          float64 `json:"lr"`
	Beta1       float64 `json:"beta1"`
	Beta2       float64 `json:"beta2"`
	Eps         float64 `json:"eps"`
	WeightDecay float64 `json:"weight_decay"`
}

func DefaultAdamax() AdamaxConfig {
	return AdamaxConfig{LR: 2e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
}

// NewAdamax needs two states as large as the parameters.
func NewAdamax(p iter.Seq2[string, *snug.Param], c AdamaxConfig, g ...Group) (Optimizer, error) {
	return wrap(newBase(p, rule{
		name: "adamax", kernel: "adamax", states: []string{"exp_avg", "exp_inf"}, lr: c.LR, decay: c.WeightDecay, groups: g,
		fractions: map[string]float64{"Beta1": c.Beta1, "Beta2": c.Beta2}, aboveZero: map[string]float64{"Eps": c.Eps},
		args: func(o *base, lr, decay float64) []float64 {
			return []float64{lr / (1 - math.Pow(c.Beta1, float64(o.steps))), decay, c.Beta1, c.Beta2, c.Eps}
		},
	}))
}
