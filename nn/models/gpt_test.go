package models_test

import (
	"math"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
)

// Loss is that of the logits, with a head of its own and a tied one, whose gradient adds up.
func TestGPTLoss(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, tied := range []bool{false, true} {
		run := func(loss func(m *models.GPT, x, y *snug.Tensor) *snug.Tensor, o ...snug.Option) (v [][]float64) {
			m := models.NewGPT(models.GPTConfig{Vocabulary: 40, Context: 8, Width: 16, Heads: 2, Layers: 2, Tied: tied})
			if err := nn.Init(bg, d, m, snug.NewRand(1)); err != nil {
				t.Fatal(err)
			}
			defer nn.Close(m)
			if err := d.Train(bg, func(s *snug.Scope) error {
				tokens := make([]int, 24)
				for i := range tokens {
					tokens[i] = 7 * i % 40
				}
				l := loss(m, snug.Upload(s, tokens, 3, 8), snug.Upload(s, tokens, 3, 8))
				if err := l.Backward(); err != nil {
					return err
				}
				all := []*snug.Tensor{l}
				for _, p := range nn.Params(m) {
					all = append(all, p.Grad(s))
				}
				for _, t := range all {
					f, err := snug.Download[float64](t)
					if v = append(v, f); err != nil {
						return err
					}
				}
				return nil
			}, append(o, snug.Random(snug.NewRand(2)))...); err != nil {
				t.Fatal(err)
			}
			return v
		}
		want := run(func(m *models.GPT, x, y *snug.Tensor) *snug.Tensor { return nn.CrossEntropy(m.Forward(x), y) })
		for what, got := range map[string][][]float64{
			"plain": run((*models.GPT).Loss), "recomputed": run((*models.GPT).Loss, checkpoint.Every(1)),
			"head recomputed": run(func(m *models.GPT, x, y *snug.Tensor) *snug.Tensor {
				return snug.BlockN(func(h ...*snug.Tensor) []*snug.Tensor {
					return []*snug.Tensor{nn.LinearCrossEntropy(h[0], m.Head.Weight, nil, h[1])}
				}, []*snug.Tensor{m.Hidden(x), y}, checkpoint.Here())[0]
			}),
		} {
			for i, w := range want {
				if d := distance(got[i], w); !(d <= 1e-6*norm(w)+1e-12) || math.IsNaN(norm(w)) {
					t.Errorf("tied %t, %s, value %d differs by %g of %g", tied, what, i, d, norm(w))
				}
			}
		}
	}
}
