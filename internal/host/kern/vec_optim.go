package kern

import "math"

// SGD is what a step of stochastic gradient descent with momentum needs.
type SGD struct{ Rate, Momentum, Decay float32 }

// SGDRow is a step for parameters w with gradients g and momentum m: m = Momentum·m + g + Decay·w, w -= Rate·m.
func SGDRow(w, g, m []float32, s *SGD) {
	g, m = g[:len(w)], m[:len(w)]
	if level >= avx2 {
		sgdVec(len(w), first(w), first(g), first(m), &s.Rate, lanes(len(w)))
		return
	}
	for i := range w {
		m[i] = float32(s.Momentum*m[i]) + (g[i] + float32(s.Decay*w[i]))
		w[i] -= float32(s.Rate * m[i])
	}
}

// AdamW is what a step of AdamW needs, of a learning rate, β₁, β₂, a decay and the number t of the step.
type AdamW struct {
	Beta1, Beta2 float32
	Keep         float32 // 1 - rate·decay
	Step         float32 // rate / (1 - β₁ᵗ)
	Root         float32 // 1 / √(1 - β₂ᵗ)
	Eps          float32
}

// AdamWRow is a step for parameters w with gradients g and moments m and v:
// m += (1-β₁)·(g - m), v = β₂·v + (1-β₂)·g², w = Keep·w - Step·m / (Root·√v + Eps).
func AdamWRow(w, g, m, v []float32, a *AdamW) {
	g, m, v = g[:len(w)], m[:len(w)], v[:len(w)]
	if level >= avx2 {
		adamwVec(len(w), first(w), first(g), first(m), first(v), &a.Beta1, lanes(len(w)))
		return
	}
	for i := range w {
		m[i] += float32((g[i] - m[i]) * (1 - a.Beta1))
		v[i] = float32(v[i]*a.Beta2) + float32(float32(g[i]*g[i])*(1-a.Beta2))
		root := float32(math.Sqrt(float64(v[i])))
		w[i] = float32(w[i]*a.Keep) - float32(m[i]/(float32(root*a.Root)+a.Eps)*a.Step)
	}
}
