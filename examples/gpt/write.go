package main

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
)

// write gives a text of so many characters, each drawn from what the model thinks comes
// next. It begins after the first of the vocabulary, which in most texts ends a line.
func (r *trainer) write(ctx context.Context, c *data.Corpus, characters int) (string, error) {
	tokens := []int64{0}
	random := rand.New(rand.NewPCG(r.Seed, 1))
	for range characters {
		seen := tokens[max(0, len(tokens)-window):]
		err := r.dev.Infer(ctx, func(s *snug.Scope) error {
			logits := r.model.Forward(snug.Upload(s, seen, 1, len(seen)))
			last := logits.Narrow(1, len(seen)-1, 1)
			v, err := snug.Download[float32](last)
			if err == nil {
				tokens = append(tokens, draw(v, 0.8, random))
			}
			return err
		})
		if err != nil {
			return c.Decode(tokens[1:]), err
		}
	}
	return c.Decode(tokens[1:]), nil
}

// draw picks an index with probability softmax(logits / temperature): the lower that is,
// the surer the choice.
func draw(logits []float32, temperature float64, r *rand.Rand) int64 {
	most := math.Inf(-1)
	for _, v := range logits {
		most = max(most, float64(v))
	}
	p, sum := make([]float64, len(logits)), 0.0
	for i, v := range logits {
		p[i] = math.Exp((float64(v) - most) / temperature)
		sum += p[i]
	}
	at := r.Float64() * sum
	for i, v := range p {
		if at -= v; at < 0 {
			return int64(i)
		}
	}
	return int64(len(p) - 1)
}
