package models

import (
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
)

// MLP is linear layers with ReLU between them: [n in] to [n out].
type MLP struct{ Layers []*nn.Linear }

// NewMLP has a layer between each two of the widths, of which the first is x's.
func NewMLP(widths ...int) *MLP {
	if len(widths) < 2 {
		panic(fmt.Sprintf("models: an MLP of widths %v; two at least wanted", widths))
	}
	m := &MLP{}
	for i := range widths[1:] {
		m.Layers = append(m.Layers, nn.NewLinear(widths[i], widths[i+1], true))
	}
	return m
}

func (m *MLP) Forward(x *snug.Tensor) *snug.Tensor {
	last := len(m.Layers) - 1
	for _, l := range m.Layers[:last] {
		x = snug.Block(func(x *snug.Tensor) *snug.Tensor { return l.Forward(x).ReLUInPlace() }, x)
	}
	return m.Layers[last].Forward(x)
}
