package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sums writes the kernels that add in float64 to two times eight sums of each plane: lane by lane, so that nothing waits.
func sums() {
	// Differences from the first element are exact.
	sum("momentsVec", "x", []int{mean}, func(k *kernel) {
		VCVTPS2PD(k.scalars[mean], k.first())
	}, func(v *vector) {
		x := v.number(0)
		switch {
		case !v.last:
			VCVTPS2PD(v.mem(0), v.double(0))
		case v.wide:
			VMOVAPS(v.scalars[mean], x)
			VMOVUPS(v.mem(0), tails[v.i], x)
			VCVTPS2PD(x, v.double(0))
		default:
			m := v.number(1)
			v.mask(m)
			VMASKMOVPS(v.mem(0), m, x)
			VBLENDVPS(m, x, v.scalars[mean], x)
			VCVTPS2PD(x, v.double(0))
		}
		d := v.double(0)
		VSUBPD(v.first(), d, d)
		VADDPD(d, v.total(0), v.total(0))
		VFMADD231PD(d, d, v.total(1))
	})
	sum("productsVec", "grad x", []int{mean}, nothing, func(v *vector) {
		g, x := v.number(0), v.number(1)
		v.load(1, x)
		VSUBPS(v.scalars[mean], x, x)
		v.load(0, g)
		v.products(0, 1)
	})
	sum("passProductsVec", "grad x", []int{mean, scale, shift, low, high}, nothing, func(v *vector) {
		g, x, y := v.number(0), v.number(1), v.number(2)
		v.load(1, x)
		VSUBPS(v.scalars[mean], x, x)
		VMULPS(v.scalars[scale], x, y)
		VADDPS(v.scalars[shift], y, y)
		v.passing(0, y, g)
		v.products(0, 1)
	})
	sum("passAddProductsVec", "dst grad x y", []int{mean, scale, shift, low, high}, nothing, func(v *vector) {
		g, x, y := v.number(0), v.number(1), v.number(2)
		v.load(2, x)
		VSUBPS(v.scalars[mean], x, x)
		VMULPS(v.scalars[scale], x, y)
		VADDPS(v.scalars[shift], y, y)
		v.load(3, g)
		VADDPS(g, y, y)
		v.passing(1, y, g)
		v.store(g, 0, y)
		v.products(0, 1)
	})
}

func nothing(*kernel) {}

func sum(name, rows string, numbers []int, begin func(k *kernel), body func(v *vector)) {
	k := kernel{name: name, rows: rows, sums: true, ahead: true, lanes: 4, vectors: 4}
	k.begin = func(k *kernel) {
		k.scalars = xmm[8:13]
		if k.wide {
			k.scalars = ymm[8:13]
		}
		k.spread(numbers...)
		begin(k)
		for _, r := range k.all()[:8] {
			VXORPS(r, r, r)
		}
	}
	k.body = func(_ *kernel, v *vector) { body(v) }
	k.end = func(k *kernel) {
		for s := range 2 {
			t := k.all()[4*s:][:4]
			VADDPD(t[1], t[0], t[0])
			VADDPD(t[3], t[2], t[2])
			VADDPD(t[2], t[0], t[0])
			m := Mem{Base: totals, Disp: 64 * s}
			VADDPD(m, t[0], t[0])
			VMOVUPD(t[0], m)
		}
		ADDQ(Imm(128), totals)
	}
	k.write()
}

// all are the registers: eight for totals, five for scalars, three for elements.
func (k *kernel) all() []reg.VecPhysical {
	if k.wide {
		return zmm
	}
	return ymm
}

// total is one of two that this vector's are added to.
func (v *vector) total(i int) reg.VecPhysical { return v.all()[4*i+v.i] }

// first is the mean in float64.
func (k *kernel) first() reg.VecPhysical { return k.all()[8+scale] }

// number and double are a register for elements, which are as many in float32 and in float64.
func (v *vector) number(i int) reg.VecPhysical {
	if v.wide {
		return ymm[13+i]
	}
	return xmm[13+i]
}

func (v *vector) double(i int) reg.VecPhysical { return v.all()[13+i] }

// products adds gradients, and times distances from the mean.
func (v *vector) products(grad, x int) {
	VCVTPS2PD(v.number(grad), v.double(grad))
	VCVTPS2PD(v.number(x), v.double(x))
	VADDPD(v.double(grad), v.total(0), v.total(0))
	VFMADD231PD(v.double(x), v.double(grad), v.total(1))
}
