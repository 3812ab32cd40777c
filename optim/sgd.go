package optim

import (
	"iter"

	"github.com/snug-ml/snug"
)

// SGDConfig is of stochastic gradient descent. With Momentum μ and Dampening τ the
// change is v ← μ·v + (1 − τ)·g, the first time v ← g, and with Nesterov g + μ·v
// (Sutskever et al., 2013). Without momentum there is no state. WeightDecay is added to
// the gradient.
type SGDConfig struct {
	LR          float64    `json:"lr"`
	Momentum    float64    `json:"momentum"`
	Dampening   float64    `json:"dampening"`
	Nesterov    bool       `json:"nesterov"`
	WeightDecay float64    `json:"weight_decay"`
	StateDType  snug.DType `json:"state_dtype"` // Float32 or BFloat16
	Rounding    Rounding   `json:"rounding"`
}

func DefaultSGD() SGDConfig { return SGDConfig{LR: 0.1, Momentum: 0.9} }

// NewSGD needs one state as large as the parameters, 4 bytes a parameter or 2 in BFloat16,
// or none without momentum. Arithmetic is in float32 all the same.
func NewSGD(p iter.Seq2[string, *snug.Param], c SGDConfig, g ...Group) (Optimizer, error) {
	if err := stateDType("sgd", c.StateDType, snug.Float32, snug.BFloat16); err != nil {
		return nil, err
	}
	r := rule{
		name: "sgd", kernel: "sgd", dtype: c.StateDType, rounding: c.Rounding, lr: c.LR, decay: c.WeightDecay, groups: g,
		fractions: map[string]float64{"Dampening": c.Dampening}, notBelow0: map[string]float64{"Momentum": c.Momentum},
		args: func(_ *base, lr, decay float64) []float64 { return []float64{lr, decay} },
	}
	if c.Momentum != 0 {
		nesterov := 0.0
		if c.Nesterov {
			nesterov = 1
		}
		r.kernel, r.states = "sgd momentum", []string{"momentum"}
		r.args = func(o *base, lr, decay float64) []float64 {
			part := 1 - c.Dampening
			if o.steps == 1 {
				part = 1
			}
			return []float64{lr, decay, c.Momentum, part, nesterov}
		}
	}
	return wrap(newBase(p, r))
}
