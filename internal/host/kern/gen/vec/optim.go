package main

// Optimizers' rules have one signature: weights, gradient and up to three states, of which a rule uses those that it
// reads. The last scalar, number 8, multiplies the gradient first. The formulas are those of package host, in its order
// of operations.
func rules() {
	// rule writes the weights and the states, or as many of these as its body gives.
	rule := func(name string, states int, body func(w, g *value, s []*value) []*value) {
		all, read := "w grad a b c", "w grad a b c"[:len("w grad")+2*states]
		row(name, all, read, "w a b c", func(in []*value) []*value { return body(in[0], mul(in[1], scalar(8)), in[2:]) })
	}
	decayed := func(g, w *value, decay int) *value { return add(g, mul(w, scalar(decay))) }
	toward := func(m, g *value, part int) *value { return add(m, mul(sub(g, m), scalar(part))) }
	squares := func(v, g *value, keep, part int) *value { // keep·v + part·g²
		return add(mul(v, scalar(keep)), mul(mul(g, scalar(part)), g))
	}
	less := func(w, step *value) *value { return sub(w, step) }

	rule("sgdVec", 0, func(w, g *value, _ []*value) []*value { // rate, decay
		return []*value{less(w, mul(decayed(g, w, 1), scalar(0)))}
	})
	momentum := func(m, g *value) *value { // rate, decay, momentum, 1 - dampening
		return add(mul(m, scalar(2)), mul(g, scalar(3)))
	}
	rule("momentumVec", 1, func(w, g *value, s []*value) []*value {
		m := momentum(s[0], decayed(g, w, 1))
		return []*value{less(w, mul(m, scalar(0))), m}
	})
	rule("nesterovVec", 1, func(w, g *value, s []*value) []*value {
		g = decayed(g, w, 1)
		m := momentum(s[0], g)
		return []*value{less(w, mul(add(g, mul(m, scalar(2))), scalar(0))), m}
	})
	most := func(x, y *value) *value { // a NaN where one of them is
		return pick(compare(unordered, y, y), y, greater(y, x))
	}
	adam := func(w, g *value, s []*value) []*value { // 1 - β1, β2, 1 - β2, decay, step, root, ε, keep
		w = mul(w, scalar(7))
		g = decayed(g, w, 3)
		m, v := toward(s[0], g, 0), squares(s[1], g, 1, 2)
		states := []*value{m, v}
		if len(s) > 2 {
			v = most(v, s[2])
			states = append(states, v)
		}
		root := add(mul(sqrt(v), scalar(5)), scalar(6))
		return append([]*value{less(w, div(mul(m, scalar(4)), root))}, states...)
	}
	rule("adamVec", 2, adam)
	rule("amsgradVec", 3, adam)
	rmsprop := func(momentum, centered bool) func(w, g *value, s []*value) []*value { // rate, decay, α, 1 - α, ε, momentum
		return func(w, g *value, s []*value) []*value {
			g = decayed(g, w, 1)
			v := squares(s[0], g, 2, 3)
			states, rest, q := []*value{v}, s[1:], v
			var buffer, mean *value
			if momentum {
				buffer, rest = rest[0], rest[1:]
			}
			if centered {
				mean = toward(rest[0], g, 3)
				q = sub(v, mul(mean, mean))
			}
			g = div(g, add(sqrt(q), scalar(4)))
			if momentum {
				g = add(mul(buffer, scalar(5)), g)
				states = append(states, g)
			}
			if centered {
				states = append(states, mean)
			}
			return append([]*value{less(w, mul(g, scalar(0)))}, states...)
		}
	}
	rule("rmspropVec", 1, rmsprop(false, false))
	rule("rmspropMomentumVec", 2, rmsprop(true, false))
	rule("rmspropCenteredVec", 2, rmsprop(false, true))
	rule("rmspropCenteredMomentumVec", 3, rmsprop(true, true))
	rule("adagradVec", 1, func(w, g *value, s []*value) []*value { // rate, decay, ε
		g = decayed(g, w, 1)
		sum := add(s[0], mul(g, g))
		return []*value{less(w, div(mul(g, scalar(0)), add(sqrt(sum), scalar(2)))), sum}
	})
	rule("adadeltaVec", 2, func(w, g *value, s []*value) []*value { // rate, decay, ρ, 1 - ρ, ε
		g = decayed(g, w, 1)
		v := squares(s[0], g, 2, 3)
		g = mul(g, div(sqrt(add(s[1], scalar(4))), sqrt(add(v, scalar(4)))))
		return []*value{less(w, mul(g, scalar(0))), v, squares(s[1], g, 2, 3)}
	})
	rule("nadamVec", 2, func(w, g *value, s []*value) []*value { // rate on the gradient, decay, 1 - β1, β2, 1 - β2, ε, rate on the mean, root
		g = decayed(g, w, 1)
		m, v := toward(s[0], g, 2), squares(s[1], g, 3, 4)
		g = add(mul(g, scalar(0)), mul(m, scalar(6)))
		return []*value{less(w, div(g, add(mul(sqrt(v), scalar(7)), scalar(5)))), m, v}
	})
	rule("adamaxVec", 2, func(w, g *value, s []*value) []*value { // rate, decay, 1 - β1, β2, ε
		g = decayed(g, w, 1)
		m := toward(s[0], g, 2)
		u := most(add(abs(g), scalar(4)), mul(s[1], scalar(3)))
		return []*value{less(w, div(mul(m, scalar(0)), u)), m, u}
	})
}
