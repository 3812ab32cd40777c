package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Optimizers' rules have one signature: weights, gradient and up to three states, of which a rule uses those that it
// reads. The formulas are those of package host, in its order of operations.
func rules() {
	w, g, a, b, t := ymm[0], ymm[1], ymm[2], ymm[3], temps[0]
	third := rows[4]
	decayed := func(decay int) { // g + decay·w
		VMULPS(scalar(decay), w, t)
		VADDPS(t, g, g)
	}
	toward := func(m reg.VecPhysical, part int) { // m += part·(g - m)
		VSUBPS(m, g, t)
		VMULPS(scalar(part), t, t)
		VADDPS(t, m, m)
	}
	squares := func(v reg.VecPhysical, keep, part int) { // v = keep·v + part·g²
		VMULPS(scalar(part), g, t)
		VMULPS(g, t, t)
		VMULPS(scalar(keep), v, v)
		VADDPS(t, v, v)
	}
	rule := func(name, states, written string, body func()) {
		all := []string{"w", "grad", "a", "b", "c"}
		read := "w grad"
		for i := range states {
			read += " " + all[2+i]
		}
		row(name, "w grad a b c", read, written, 4, body)
	}

	rule("sgdVec", "", "w", func() { // rate, decay
		decayed(1)
		VMULPS(scalar(0), g, t)
		VSUBPS(t, w, w)
	})
	momentum := func() { // rate, decay, momentum, 1 - dampening
		decayed(1)
		VMULPS(scalar(2), a, a)
		VMULPS(scalar(3), g, t)
		VADDPS(t, a, a)
	}
	rule("momentumVec", "m", "w a", func() {
		momentum()
		VMULPS(scalar(0), a, t)
		VSUBPS(t, w, w)
	})
	rule("nesterovVec", "m", "w a", func() {
		momentum()
		VMULPS(scalar(2), a, t)
		VADDPS(g, t, t)
		VMULPS(scalar(0), t, t)
		VSUBPS(t, w, w)
	})
	greater := func(x, y reg.VecPhysical) { // y = max(x, y), a NaN where one of them is
		VCMPPS(Imm(3), y, y, t)
		VMAXPS(x, y, y)
		VORPS(t, y, y)
	}
	adam := func(most bool) { // 1 - β1, β2, 1 - β2, decay, step, root, ε, keep
		VMULPS(scalar(7), w, w)
		decayed(3)
		toward(a, 0)
		squares(b, 1, 2)
		q := b
		if most {
			greater(b, third)
			q = third
		}
		VSQRTPS(q, t)
		VMULPS(scalar(5), t, t)
		VADDPS(scalar(6), t, t)
		VMULPS(scalar(4), a, g)
		VDIVPS(t, g, t)
		VSUBPS(t, w, w)
	}
	rule("adamVec", "mv", "w a b", func() { adam(false) })
	rule("amsgradVec", "mvx", "w a b c", func() { adam(true) })
	rmsprop := func(momentum, centered bool) { // rate, decay, α, 1 - α, ε, momentum
		decayed(1)
		squares(a, 2, 3)
		q, mean := a, b
		if momentum {
			mean = third
		}
		if centered {
			toward(mean, 3)
			VMULPS(mean, mean, t)
			VSUBPS(t, a, temps[1])
			q = temps[1]
		}
		VSQRTPS(q, t)
		VADDPS(scalar(4), t, t)
		VDIVPS(t, g, g)
		if momentum {
			VMULPS(scalar(5), b, b)
			VADDPS(g, b, b)
			g = b
		}
		VMULPS(scalar(0), g, t)
		VSUBPS(t, w, w)
		g = ymm[1]
	}
	rule("rmspropVec", "v", "w a", func() { rmsprop(false, false) })
	rule("rmspropMomentumVec", "vm", "w a b", func() { rmsprop(true, false) })
	rule("rmspropCenteredVec", "vx", "w a b", func() { rmsprop(false, true) })
	rule("rmspropCenteredMomentumVec", "vmx", "w a b c", func() { rmsprop(true, true) })
	rule("adagradVec", "s", "w a", func() { // rate, decay, ε
		decayed(1)
		VMULPS(g, g, t)
		VADDPS(t, a, a)
		VSQRTPS(a, t)
		VADDPS(scalar(2), t, t)
		VMULPS(scalar(0), g, g)
		VDIVPS(t, g, g)
		VSUBPS(g, w, w)
	})
	rule("adadeltaVec", "vu", "w a b", func() { // rate, decay, ρ, 1 - ρ, ε
		decayed(1)
		squares(a, 2, 3)
		VADDPS(scalar(4), b, temps[1])
		VSQRTPS(temps[1], temps[1])
		VADDPS(scalar(4), a, t)
		VSQRTPS(t, t)
		VDIVPS(t, temps[1], t)
		VMULPS(t, g, g)
		squares(b, 2, 3)
		VMULPS(scalar(0), g, g)
		VSUBPS(g, w, w)
	})
	rule("nadamVec", "mv", "w a b", func() { // rate on the gradient, decay, 1 - β1, β2, 1 - β2, ε, rate on the mean, root
		decayed(1)
		toward(a, 2)
		squares(b, 3, 4)
		VMULPS(scalar(0), g, g)
		VMULPS(scalar(6), a, t)
		VADDPS(t, g, g)
		VSQRTPS(b, t)
		VMULPS(scalar(7), t, t)
		VADDPS(scalar(5), t, t)
		VDIVPS(t, g, g)
		VSUBPS(g, w, w)
	})
	rule("adamaxVec", "mu", "w a b", func() { // rate, decay, 1 - β1, β2, ε
		decayed(1)
		toward(a, 2)
		VANDPS(bits(0x7fffffff), g, g)
		VADDPS(scalar(4), g, g)
		VMULPS(scalar(3), b, b)
		greater(g, b)
		VMULPS(scalar(0), a, t)
		VDIVPS(b, t, t)
		VSUBPS(t, w, w)
	})
}

// scalar is one of row's: those that have no register are spread into a temporary, for one use.
func scalar(i int) reg.VecPhysical {
	if i < 4 {
		return scalars[i]
	}
	VBROADCASTSS(Mem{Base: reg.RDX, Disp: 4 * i}, temps[3])
	return temps[3]
}
