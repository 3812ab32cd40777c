package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// rows writes the kernels that go from elements to elements. Every operation is rounded, as in Go.
func rows() {
	row("normVec", "dst x", false, []int{mean, scale, shift, low, high}, func(v *vector) {
		x := v.temp[0]
		v.load(1, x)
		v.normalize(x)
		v.clamp(x)
		v.store(x, 0, v.temp[1])
	})
	row("normAddVec", "dst x y", false, []int{mean, scale, shift, low, high}, func(v *vector) {
		x, y := v.temp[0], v.temp[1]
		v.load(1, x)
		v.normalize(x)
		v.load(2, y)
		VADDPS(y, x, x)
		v.clamp(x)
		v.store(x, 0, y)
	})
	row("normBackVec", "dst grad x", true, []int{mean, scale, p, q}, func(v *vector) {
		x, g := v.temp[0], v.temp[1]
		v.load(2, x)
		VSUBPS(v.scalars[mean], x, x)
		v.load(1, g)
		v.back(x, g)
		v.store(g, 0, x)
	})
	row("passBackVec", "dst grad x", true, []int{mean, scale, shift, low, high, p, q}, func(v *vector) {
		x, y, g := v.temp[0], v.temp[1], v.temp[2]
		v.load(2, x)
		VSUBPS(v.scalars[mean], x, x)
		VMULPS(v.scalars[scale], x, y)
		VADDPS(v.scalars[shift], y, y)
		v.passing(1, y, g)
		v.back(x, g)
		v.store(g, 0, x)
	})
}

func row(name, rows string, ahead bool, numbers []int, body func(v *vector)) {
	k := kernel{name: name, rows: rows, ahead: ahead, past: !ahead, lanes: 8, vectors: 2}
	k.begin = func(k *kernel) {
		k.temp, k.scalars = ymm[:4], ymm[8:]
		if k.wide {
			k.temp, k.scalars = zmm[:4], zmm[8:]
		}
		k.spread(numbers...)
	}
	k.body = func(_ *kernel, v *vector) { body(v) }
	k.end = func(*kernel) {}
	k.write()
}

func (v *vector) normalize(x reg.VecPhysical) {
	VSUBPS(v.scalars[mean], x, x)
	VMULPS(v.scalars[scale], x, x)
	VADDPS(v.scalars[shift], x, x)
}

// clamp leaves a NaN.
func (v *vector) clamp(x reg.VecPhysical) {
	VMAXPS(x, v.scalars[low], x)
	VMINPS(x, v.scalars[high], x)
}

// back makes g the gradient scale·g + p·x + q, for the x that is a distance from the mean.
func (v *vector) back(x, g reg.VecPhysical) {
	VMULPS(v.scalars[scale], g, g)
	VMULPS(v.scalars[p], x, x)
	VADDPS(x, g, g)
	VADDPS(v.scalars[q], g, g)
}
