package optim

import (
	"iter"

	"github.com/snug-ml/snug"
)

// RMSpropConfig is of RMSprop (Hinton, 2012); Centered divides by the variance, not the
// second moment (Graves, 2013).
type RMSpropConfig struct {
	LR          float64 `json:"lr"`
	Alpha       float64 `json:"alpha"`
	Eps         float64 `json:"eps"`
	WeightDecay float64 `json:"weight_decay"`
	Momentum    float64 `json:"momentum"`
	Centered    bool    `json:"centered"`
}

func DefaultRMSprop() RMSpropConfig { return RMSpropConfig{LR: 1e-2, Alpha: 0.99, Eps: 1e-8} }

// NewRMSprop needs one state as large as the parameters, one more with Momentum and one
// more when Centered.
func NewRMSprop(p iter.Seq2[string, *snug.Param], c RMSpropConfig, g ...Group) (Optimizer, error) {
	states := []string{"square_avg"}
	if c.Momentum != 0 {
		states = append(states, "momentum")
	}
	centered := 0.0
	if c.Centered {
		states, centered = append(states, "grad_avg"), 1
	}
	return wrap(newBase(p, rule{
		name: "rmsprop", kernel: "rmsprop", states: states, lr: c.LR, decay: c.WeightDecay, groups: g,
		fractions: map[string]float64{"Alpha": c.Alpha}, aboveZero: map[string]float64{"Eps": c.Eps},
		notBelow0: map[string]float64{"Momentum": c.Momentum},
		args: func(_ *base, lr, decay float64) []float64 {
			return []float64{lr, decay, c.Alpha, c.Eps, c.Momentum, centered}
		},
	}))
}

// AdagradConfig is of Adagrad (Duchi et al., 2011).
type AdagradConfig struct {
	LR          float64 `json:"lr"`
	LRDecay     float64 `json:"lr_decay"`
	Eps         float64 `json:"eps"`
	WeightDecay float64 `json:"weight_decay"`
}

func DefaultAdagrad() AdagradConfig { return AdagradConfig{LR: 1e-2, Eps: 1e-10} }

// NewAdagrad needs one state as large as the parameters.
func NewAdagrad(p iter.Seq2[string, *snug.Param], c AdagradConfig, g ...Group) (Optimizer, error) {
	return wrap(newBase(p, rule{
		name: "adagrad", kernel: "adagrad", states: []string{"sum"}, lr: c.LR, decay: c.WeightDecay, groups: g,
		aboveZero: map[string]float64{"Eps": c.Eps}, notBelow0: map[string]float64{"LRDecay": c.LRDecay},
		args: func(o *base, lr, decay float64) []float64 {
			return []float64{lr / (1 + float64(o.steps-1)*c.LRDecay), decay, c.Eps}
		},
	}))
}

// AdadeltaConfig is of Adadelta (Zeiler, 2012).
type AdadeltaConfig struct {
	LR          float64 `json:"lr"`
	Rho         float64 `json:"rho"`
	Eps         float64 `json:"eps"`
	WeightDecay float64 `json:"weight_decay"`
}

func DefaultAdadelta() AdadeltaConfig { return AdadeltaConfig{LR: 1, Rho: 0.9, Eps: 1e-6} }

// NewAdadelta needs two states as large as the parameters.
func NewAdadelta(p iter.Seq2[string, *snug.Param], c AdadeltaConfig, g ...Group) (Optimizer, error) {
	return wrap(newBase(p, rule{
		name: "adadelta", kernel: "adadelta", states: []string{"square_avg", "acc_delta"}, lr: c.LR, decay: c.WeightDecay, groups: g,
		fractions: map[string]float64{"Rho": c.Rho}, aboveZero: map[string]float64{"Eps": c.Eps},
		args: func(_ *base, lr, decay float64) []float64 { return []float64{lr, decay, c.Rho, c.Eps} },
	}))
}
