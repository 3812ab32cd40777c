package kern

// Rule is vector code of an optimizer's step over weights, their gradients and up to three states. What the scalars are
// stands in gen/vec/optim.go.
type Rule func(n int, w, grad, a, b, c, scalars *float32)

var (
	SGD                     Rule = sgdVec
	Momentum                Rule = momentumVec
	Nesterov                Rule = nesterovVec
	Adam                    Rule = adamVec
	AMSGrad                 Rule = amsgradVec
	RMSprop                 Rule = rmspropVec
	RMSpropMomentum         Rule = rmspropMomentumVec
	RMSpropCentered         Rule = rmspropCenteredVec
	RMSpropCenteredMomentum Rule = rmspropCenteredMomentumVec
	Adagrad                 Rule = adagradVec
	Adadelta                Rule = adadeltaVec
	NAdam                   Rule = nadamVec
	Adamax                  Rule = adamaxVec
)

// Run steps all of w by g and states that are as long, or nil. It reports whether it did: this machine may have no vector
// code.
func (r Rule) Run(w, g, a, b, c, scalars []float32) bool {
	if level < avx2 {
		return false
	}
	for _, s := range [][]float32{g, a, b, c} {
		if s != nil {
			_ = s[:len(w)]
		}
	}
	r(len(w), first(w), first(g), first(a), first(b), first(c), first(scalars))
	return true
}
