package checkpoint

import (
	"fmt"

	"github.com/snug-ml/snug"
)

// Layer is what nn.Layer is.
type Layer interface {
	Forward(*snug.Tensor) *snug.Tensor
}

// Layers are named by their numbers, as in an nn.Sequential.
type Layers []Layer

// Sequential is layers one after the other, in Segments of about equally many, each of which
// is recomputed. The last one is, too: where what follows needs little memory, leave the
// last layers out, in a Sequential of nn around this one, and the peak is no higher.
type Sequential struct {
	Layers
	Segments int // those beyond the number of layers are empty
}

// NewSequential is for 1 segment or more: about √len(layers) of them need the least memory.
func NewSequential[L Layer](layers []L, segments int) *Sequential {
	if segments < 1 {
		panic(fmt.Sprintf("checkpoint: %d segments", segments))
	}
	m := &Sequential{Segments: segments}
	for _, l := range layers {
		m.Layers = append(m.Layers, l)
	}
	return m
}

func (m *Sequential) Forward(x *snug.Tensor) *snug.Tensor {
	var segments []func(*snug.Tensor) *snug.Tensor
	for i := range m.Segments {
		var layers []func(*snug.Tensor) *snug.Tensor
		for _, l := range m.Layers[i*len(m.Layers)/m.Segments : (i+1)*len(m.Layers)/m.Segments] {
			layers = append(layers, l.Forward)
		}
		if len(layers) > 0 {
			segments = append(segments, func(x *snug.Tensor) *snug.Tensor {
				return snug.Block(func(x *snug.Tensor) *snug.Tensor { return snug.Chain(x, layers...) }, x, Here())
			})
		}
	}
	return snug.Chain(x, segments...)
}
