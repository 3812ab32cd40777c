package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var nine = []reg.GPPhysical{reg.RSI, reg.RDI, reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.RBX}

// ninePlaces makes pointers of the places in off.
func ninePlaces() {
	Load(Param("b"), reg.RCX)
	Load(Param("off"), reg.RDX)
	for i, p := range nine {
		MOVLQSX(Mem{Base: reg.RDX, Disp: 4 * i}, p)
		LEAQ(Mem{Base: reg.RCX, Index: p, Scale: 4}, p)
	}
}

// convTile9 writes the same as convTile for one channel and 9 weights: those of a depthwise convolution, which stay in
// registers.
func (s set) convTile9() {
	s.kernel("convNine", "func(a, b, c *float32, off *int32, acc int, tiles *int32, n int)", "computes one channel of 9 weights.")
	ninePlaces()
	sums, weights, masks := s.v[9:11], s.v[:9], s.v[11:13]
	Load(Param("a"), reg.RCX)
	for i, w := range weights {
		VBROADCASTSS(Mem{Base: reg.RCX, Disp: 4 * i}, w)
	}
	tiles, c, x, c2 := reg.RDX, reg.R15, reg.RAX, reg.RCX
	Load(Param("tiles"), tiles)
	Label("tile")
	Load(Param("c"), c)
	field(tiles, 0, x)
	field(tiles, 1, c2)
	ADDQ(x, c2)
	for i, p := range nine {
		for j, at := range []reg.GPPhysical{x, c2} {
			m := Mem{Base: p, Index: at, Scale: 4}
			if i == 0 {
				VMULPS(m, weights[i], sums[j])
			} else {
				VFMADD231PS(m, weights[i], sums[j])
			}
		}
	}
	field(tiles, 2, x)
	field(tiles, 3, c2)
	LEAQ(Mem{Base: c, Index: x, Scale: 4}, c)
	LEAQ(Mem{Base: c, Index: c2, Scale: 4}, c2)
	places := []reg.GPPhysical{c, c2}
	lanes, acc := tileLanes, NewParamAddr("acc", 32)
	lanes.Base = tiles
	CMPL(lanes, s.full())
	JE(LabelRef("full"))
	s.masks(lanes, masks, x, reg.R14)
	CMPQ(acc, Imm(0))
	JE(LabelRef("maskedStore"))
	for j, p := range places {
		s.load(Mem{Base: p}, masks, j, s.v[13])
		VADDPS(s.v[13], sums[j], sums[j])
	}
	Label("maskedStore")
	for j, p := range places {
		s.store(sums[j], masks, j, Mem{Base: p})
	}
	JMP(LabelRef("next"))
	Label("full")
	CMPQ(acc, Imm(0))
	JE(LabelRef("store"))
	for j, p := range places {
		VADDPS(Mem{Base: p}, sums[j], sums[j])
	}
	Label("store")
	for j, p := range places {
		VMOVUPS(sums[j], Mem{Base: p})
	}
	Label("next")
	ADDQ(tileSize, tiles)
	DECQ(NewParamAddr("n", 48))
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// dots9 writes the kernel of a depthwise convolution's weight gradient: to each of 9 vectors of sums it adds those
// over all tiles of the image's pixels, at the places in off, times the result's.
func (s set) dots9() {
	s.kernel("convDots9", "func(b, c *float32, off *int32, sums *float32, tiles *int32, n int)", "computes the gradients of 9 weights.")
	ninePlaces()
	sums, grads, masks, t := s.v[:9], s.v[9:11], s.v[11:13], s.v[13]
	s.clear(sums)
	tiles, c, x, x2 := reg.RDX, reg.R15, reg.RAX, reg.RCX
	Load(Param("tiles"), tiles)
	Label("tile")
	Load(Param("c"), c)
	field(tiles, 2, x)
	LEAQ(Mem{Base: c, Index: x, Scale: 4}, c)
	field(tiles, 3, x2)
	first, second := Mem{Base: c}, Mem{Base: c, Index: x2, Scale: 4}
	lanes := tileLanes
	lanes.Base = tiles
	CMPL(lanes, s.full())
	JE(LabelRef("full"))
	s.masks(lanes, masks, x, reg.R14)
	s.load(first, masks, 0, grads[0])
	s.load(second, masks, 1, grads[1])
	field(tiles, 0, x)
	field(tiles, 1, x2)
	ADDQ(x, x2)
	for i, p := range nine {
		for j, at := range []reg.GPPhysical{x, x2} {
			s.load(Mem{Base: p, Index: at, Scale: 4}, masks, j, t)
			VFMADD231PS(t, grads[j], sums[i])
		}
	}
	JMP(LabelRef("next"))
	Label("full")
	VMOVUPS(first, grads[0])
	VMOVUPS(second, grads[1])
	field(tiles, 0, x)
	field(tiles, 1, x2)
	ADDQ(x, x2)
	for i, p := range nine {
		for j, at := range []reg.GPPhysical{x, x2} {
			VFMADD231PS(Mem{Base: p, Index: at, Scale: 4}, grads[j], sums[i])
		}
	}
	Label("next")
	ADDQ(tileSize, tiles)
	DECQ(NewParamAddr("n", 40))
	JNE(LabelRef("tile"))
	Load(Param("sums"), c)
	for i, v := range sums {
		m := Mem{Base: c, Disp: s.bytes() * i}
		VADDPS(m, v, v)
		VMOVUPS(v, m)
	}
	VZEROUPPER()
	RET()
}

// The kernels of planes: a channel alone, with 9 weights, of stride 1 and 2, for AVX-512. Each goes down 16 columns of the
// result, and reads what these meet of a row of the image once, `first` bytes after src. Columns have a mask from there on.
func planes() {
	planeForward(1)
	planeForward(2)
	planeBack(false)
	planeBack(true)
	planeDots(1)
	planeDots(2)
}

// planeMasks makes masks of what exists of a row: of three vectors a column apart, or of what every other column of is.
func planeMasks(stride int, t reg.GPPhysical) {
	Load(Param("columns"), t)
	KMOVW(t.As32(), reg.K1)
	if stride == 1 {
		SHRQ(Imm(1), t)
		KMOVW(t.As32(), reg.K2)
		SHRQ(Imm(1), t)
		KMOVW(t.As32(), reg.K3)
		return
	}
	SHRQ(Imm(2), t)
	KMOVW(t.As32(), reg.K3)
	SHRQ(Imm(14), t)
	KMOVW(t.As32(), reg.K2)
	SHRQ(Imm(2), t)
	KMOVW(t.As32(), reg.K4)
}

// planeRow loads the three vectors that the weights of a row meet. It takes five, and two of indices.
func planeRow(stride int, src, pitch reg.GPPhysical, v, index []reg.VecPhysical) [3]reg.VecPhysical {
	at := Mem{Base: src}
	for i := range stride { // rows apart are not found by the processor itself
		PREFETCHT0(Mem{Base: src, Index: pitch, Scale: 8, Disp: 64 * i})
	}
	if stride == 1 {
		for i, k := range []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3} {
			VMOVUPS_Z(at.Offset(4*i), k, v[i])
		}
		return [3]reg.VecPhysical{v[0], v[1], v[2]}
	}
	VMOVUPS_Z(at, reg.K1, v[0])
	VMOVUPS_Z(at.Offset(64), reg.K2, v[1])
	VMOVUPS_Z(at.Offset(8), reg.K3, v[2])
	VMOVUPS_Z(at.Offset(72), reg.K4, v[3])
	VMOVAPS(v[0], v[4])
	VPERMT2PS(v[1], index[0], v[0])
	VPERMT2PS(v[1], index[1], v[4])
	VPERMT2PS(v[3], index[0], v[2])
	return [3]reg.VecPhysical{v[0], v[4], v[2]}
}

// planeForward writes the kernel of a forward pass. w has the bias after the weights. The first rows, `before`, complete no
// line of the result, and after the last there are `after` more. Of stride 2, it begins with a line's second row if odd is 1.
func planeForward(stride int) {
	avx512.kernel([]string{"", "planeForward", "planeForwardTwo"}[stride],
		"func(src *float32, first, pitch, rows int, columns uint64, w, dst *float32, dp, before, after, odd, n int)", "computes n columns of a plane.")
	z := avx512.v
	src, pitch, rows, dst, dp, before, after, odd, t := reg.RSI, reg.RDX, reg.RCX, reg.RDI, reg.R8, reg.R9, reg.R10, reg.R11, reg.RAX
	w, bias, index := z[:9], z[9], z[30:32]
	Load(Param("w"), t)
	for i := range 10 {
		VBROADCASTSS(Mem{Base: t, Disp: 4 * i}, z[i])
	}
	planeMasks(stride, t)
	Load(Param("n"), t)
	lanesMask(t, src, reg.K5)
	Load(Param("src"), src)
	Load(Param("first"), t)
	ADDQ(t, src)
	Load(Param("pitch"), pitch)
	Load(Param("rows"), rows)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	Load(Param("before"), before)
	Load(Param("after"), after)
	if stride == 2 {
		Load(Param("odd"), odd)
		VMOVDQU32(evens, index[0])
		VMOVDQU32(oddLanes, index[1])
	}
	add := func(row [3]reg.VecPhysical, weights int, sum reg.VecPhysical) {
		for i, v := range row {
			VFMADD231PS(v, w[weights+i], sum)
		}
	}
	write := func(sum reg.VecPhysical) {
		VMOVUPS(sum, reg.K5, Mem{Base: dst})
		ADDQ(dp, dst)
	}
	a, b := z[10], z[11] // the line that is completed first, and the next
	VMOVAPS(bias, a)
	VMOVAPS(bias, b)
	Label("row")
	row := planeRow(stride, src, pitch, z[12:17], index)
	ADDQ(pitch, src)
	if stride == 2 {
		XORQ(Imm(1), odd)
		JNE(LabelRef("last"))
		add(row, 3, a)
		JMP(LabelRef("end"))
		Label("last")
	}
	add(row, 6, a)
	DECQ(before)
	JGE(LabelRef("next"))
	write(a)
	Label("next")
	if stride == 1 {
		VMOVAPS(b, a)
		add(row, 3, a)
		VMOVAPS(bias, b)
		add(row, 0, b)
	} else {
		VMOVAPS(bias, a)
		add(row, 0, a)
		Label("end")
	}
	DECQ(rows)
	JNE(LabelRef("row"))
	Label("rest")
	DECQ(after)
	JL(LabelRef("done"))
	write(a)
	VMOVAPS(b, a)
	VMOVAPS(bias, b)
	JMP(LabelRef("rest"))
	Label("done")
	VZEROUPPER()
	RET()
}

// planeBack writes the kernel of a data gradient of stride 2: each row of the result's gradient makes, with the one before,
// a line, and alone another. K1 and K2 are of the row and of it from a column before on. The result's columns that
// meet the outer weights are the even ones, or the odd ones. Of the lines, whose first may be skipped, n columns exist.
func planeBack(odd bool) {
	name := "planeBackTwo"
	if odd {
		name += "Odd"
	}
	avx512.kernel(name, "func(src *float32, first, pitch, rows int, columns uint64, w, dst *float32, dp, skip, lines, n int)",
		"computes up to 32 columns of a plane's gradient.")
	z := avx512.v
	src, pitch, rows, dst, dp, skip, lines, t := reg.RSI, reg.RDX, reg.RCX, reg.RDI, reg.R8, reg.R9, reg.R10, reg.RAX
	w := z[:9]
	Load(Param("w"), t)
	for i := range w {
		VBROADCASTSS(Mem{Base: t, Disp: 4 * i}, w[i])
	}
	Load(Param("columns"), t)
	KMOVW(t.As32(), reg.K2)
	SHRQ(Imm(1), t)
	KMOVW(t.As32(), reg.K1)
	Load(Param("n"), t)
	lanesMask(t, src, reg.K3)
	SHRQ(Imm(16), src)
	KMOVW(src.As32(), reg.K4)
	low, high := z[31], z[30]
	VMOVDQU32(pairsLower, low)
	VMOVDQU32(pairsUpper, high)
	Load(Param("src"), src)
	Load(Param("first"), t)
	ADDQ(t, src)
	Load(Param("pitch"), pitch)
	Load(Param("rows"), rows)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	Load(Param("skip"), skip)
	Load(Param("lines"), lines)
	outer, inner := z[9], z[10] // what the row before adds
	avx512.clear(z[9:11])
	write := func(outer, inner reg.VecPhysical, name string) {
		even, odds := outer, inner
		if odd {
			even, odds = inner, outer
		}
		DECQ(skip)
		JGE(LabelRef(name))
		DECQ(lines)
		JL(LabelRef("done"))
		VMOVAPS(even, z[15])
		VPERMT2PS(odds, low, z[15])
		VPERMT2PS(odds, high, even)
		VMOVUPS(z[15], reg.K3, Mem{Base: dst})
		VMOVUPS(even, reg.K4, Mem{Base: dst, Disp: 64})
		ADDQ(dp, dst)
		Label(name)
	}
	row, before := z[11], z[12]
	middle := row
	if odd {
		middle = before
	}
	Label("row")
	avx512.clear(z[11:13]) // beyond the last row
	DECQ(rows)
	JL(LabelRef("none"))
	VMOVUPS_Z(Mem{Base: src}, reg.K2, before)
	VMOVUPS_Z(Mem{Base: src, Disp: 4}, reg.K1, row)
	Label("none")
	ADDQ(pitch, src)
	VFMADD231PS(row, w[0], outer)
	VFMADD231PS(before, w[2], outer)
	VFMADD231PS(middle, w[1], inner)
	write(outer, inner, "first")
	VMULPS(row, w[3], z[13])
	VFMADD231PS(before, w[5], z[13])
	VMULPS(middle, w[4], z[14])
	write(z[13], z[14], "second")
	VMULPS(row, w[6], outer)
	VFMADD231PS(before, w[8], outer)
	VMULPS(middle, w[7], inner)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// planeDots writes the kernel of the gradient of 9 weights: it adds to a vector for each the products of n columns of the
// result's gradient, whose lines are dp bytes apart, with what of the image they meet. Rows before the first and after the
// last are zeros; `before` is how many of the first line's there are.
func planeDots(stride int) {
	avx512.kernel([]string{"", "planeDots", "planeDotsTwo"}[stride],
		"func(src *float32, first, pitch, rows int, columns uint64, dy *float32, dp, lines, before, n int, sums *float32)", "adds products of n columns.")
	z := avx512.v
	src, pitch, rows, dy, dp, lines, before, t := reg.RSI, reg.RDX, reg.RCX, reg.RDI, reg.R8, reg.R9, reg.R10, reg.RAX
	sums, index := z[:9], z[30:32]
	planeMasks(stride, t)
	Load(Param("n"), t)
	lanesMask(t, src, reg.K5)
	Load(Param("src"), src)
	Load(Param("first"), t)
	ADDQ(t, src)
	Load(Param("pitch"), pitch)
	Load(Param("rows"), rows)
	Load(Param("dy"), dy)
	Load(Param("dp"), dp)
	Load(Param("lines"), lines)
	Load(Param("before"), before)
	avx512.clear(sums)
	if stride == 2 {
		VMOVDQU32(evens, index[0])
		VMOVDQU32(oddLanes, index[1])
	}
	// next loads a line of the gradient, zeros after the last.
	next := func(v reg.VecPhysical, name string) {
		avx512.clear([]reg.VecPhysical{v})
		DECQ(lines)
		JL(LabelRef(name))
		PREFETCHT0(Mem{Base: dy, Index: dp, Scale: 8})
		VMOVUPS_Z(Mem{Base: dy}, reg.K5, v)
		ADDQ(dp, dy)
		Label(name)
	}
	add := func(row [3]reg.VecPhysical, weights int, line reg.VecPhysical) {
		for i, v := range row {
			VFMADD231PS(v, line, sums[weights+i])
		}
	}
	// The lines that meet a row with their last weights, with those before, and, of stride 1, with their first.
	a, b, c := z[9], z[10], z[11]
	avx512.clear(z[9:12])
	if stride == 1 {
		// Rows that are not there take lines along.
		Label("skip")
		DECQ(before)
		JL(LabelRef("row"))
		VMOVAPS(b, a)
		VMOVAPS(c, b)
		next(c, "skipped")
		JMP(LabelRef("skip"))
		Label("row")
		VMOVAPS(b, a)
		VMOVAPS(c, b)
		next(c, "loaded")
		row := planeRow(stride, src, pitch, z[12:17], index)
		ADDQ(pitch, src)
		add(row, 6, a)
		add(row, 3, b)
		add(row, 0, c)
	} else {
		CMPQ(before, Imm(0))
		JE(LabelRef("row"))
		next(b, "first")
		CMPQ(before, Imm(1))
		JNE(LabelRef("row"))
		JMP(LabelRef("odd"))
		Label("row")
		VMOVAPS(b, a)
		next(b, "loaded")
		row := planeRow(stride, src, pitch, z[12:17], index)
		ADDQ(pitch, src)
		add(row, 6, a)
		add(row, 0, b)
		DECQ(rows)
		JE(LabelRef("done"))
		Label("odd")
		row = planeRow(stride, src, pitch, z[12:17], index)
		ADDQ(pitch, src)
		add(row, 3, b)
	}
	DECQ(rows)
	JNE(LabelRef("row"))
	Label("done")
	Load(Param("sums"), t)
	for i, v := range sums {
		m := Mem{Base: t, Disp: 64 * i}
		VADDPS(m, v, v)
		VMOVUPS(v, m)
	}
	VZEROUPPER()
	RET()
}
