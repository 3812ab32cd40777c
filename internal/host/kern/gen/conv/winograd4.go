package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of Winograd's F(4x4, 3x3), for AVX-512; see conv_winograd4.go for the matrices. Lanes are tiles, but of the
// weights and the gradient's tiles, where they are output channels.
func winograd4() {
	pixelFactors = factorTable("winoPixelFactors", pointA, pointB, pointA*pointA, pointB*pointB, pointA*pointA+pointB*pointB, -pointB)
	tapFactors = factorTable("winoTapFactors", scale, scale*pointA, scale*pointB)
	foursLower = table("winoFoursLower", func(i int) int { return i/4*2 + i%2 + i%4/2*16 })
	foursUpper = table("winoFoursUpper", func(i int) int { return 8 + i/4*2 + i%2 + i%4/2*16 })
	for _, pieces := range []int{1, 2} {
		wino4Input(pieces)
		wino4Output(pieces)
	}
	wino4Weights()
	wino4Gradient()
	wino4WeightsBack()
}

// Places of pairs of two vectors in turns.
var foursLower, foursUpper Mem

// The points are 0, ±a, ±1/a and ∞.
const (
	pointA = 2.0 / 3
	pointB = 1 / pointA
	scale  = 0.5 / (pointB*pointB - pointA*pointA)
)

// What the transforms multiply with: of pixels and gradients a, 1/a, their squares, these squares' sum and -1/a; of weights
// a scale and its products with a and 1/a.
var pixelFactors, tapFactors Mem

func factorTable(name string, values ...float32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, v := range values {
		DATA(4*i, F32(v))
	}
	return m
}

// broadcast loads a factor into all lanes of each vector.
func broadcast(table Mem, v []reg.VecPhysical) {
	for i := range v {
		VBROADCASTSS(table.Offset(4*i), v[i])
	}
}

// wino4Values makes Bᵀ·d of six values, some in other places, with two vectors more. The factors are a, 1/a, their
// squares, and these squares' sum.
func wino4Values(d, t, factors []reg.VecPhysical) []reg.VecPhysical {
	a, b, a2, b2, both := factors[0], factors[1], factors[2], factors[3], factors[4]
	VMOVAPS(d[4], t[0])
	VMOVAPS(d[3], t[1])
	VADDPS(d[4], d[0], d[0])
	VADDPS(d[1], d[5], d[5])
	VFNMADD231PS(b2, d[2], t[0]) // d4 - b²·d2
	VFNMADD231PS(b2, d[1], t[1]) // d3 - b²·d1
	VFNMADD231PS(both, d[2], d[0])
	VFNMADD231PS(both, d[3], d[5])
	VFNMADD231PS(a2, d[2], d[4]) // d4 - a²·d2
	VFNMADD231PS(a2, d[1], d[3]) // d3 - a²·d1
	VMOVAPS(t[0], d[1])
	VMOVAPS(d[4], d[2])
	VFMADD231PS(a, t[1], d[1])
	VFNMADD231PS(a, t[1], t[0])
	VFMADD231PS(b, d[3], d[2])
	VFNMADD231PS(b, d[3], d[4])
	return []reg.VecPhysical{d[0], d[1], t[0], d[2], d[4], d[5]}
}

// multiples makes registers of 3 and 5 times a distance, and returns what is 0 to 5 times as far from a place.
func multiples(distance, three, five reg.GPPhysical) func(base reg.GPPhysical) [6]Mem {
	LEAQ(Mem{Base: distance, Index: distance, Scale: 2}, three)
	LEAQ(Mem{Base: distance, Index: distance, Scale: 4}, five)
	return func(base reg.GPPhysical) [6]Mem {
		return [6]Mem{
			{Base: base}, {Base: base, Index: distance, Scale: 1}, {Base: base, Index: distance, Scale: 2},
			{Base: base, Index: three, Scale: 1}, {Base: base, Index: distance, Scale: 4}, {Base: base, Index: five, Scale: 1},
		}
	}
}

// sixFurther moves t, where the r-th of six rows of six places begins, to the next row's.
func sixFurther(places [6]Mem, r int, t reg.GPPhysical) {
	if r < 5 {
		LEAQ(places[3], t)
		LEAQ(places[3], t)
	}
}

// wino4Input writes the transform of 16 tiles, 6x6 values each, of each channel. The tiles' lines are in four vectors, of
// which each has so many pieces, for each of six rows. First all columns are transformed; then index says where
// the columns of tiles are: 16 places in two vectors for each two of the six columns, of 8 tiles each, and lanes has 16
// bits each of which exist; then, of the 8 tiles of the first and the second two vectors, which are the 16.
func wino4Input(pieces int) {
	avx512.kernel(fmt.Sprintf("wino4Input%d", pieces),
		"func(channels int, src *float32, plane int, pieces *int64, index *int32, lanes uint64, rows, dst *float32, dp, fp int)",
		"transforms 16 tiles of each channel: 36 results, fp bytes apart. rows has room for 24 vectors.")
	z := avx512.v
	count, src, plane, table, rows, dst, dp, fp, t := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.R10, reg.RDI, reg.R8, reg.R9, reg.RAX
	factors, columns, halves := z[22:27], z[27:30], z[30:32]
	broadcast(pixelFactors, factors)
	Load(Param("index"), t)
	for i, v := range z[27:32] {
		VMOVDQU32(Mem{Base: t, Disp: 64 * i}, v)
	}
	exist := []reg.OpmaskPhysical{reg.K3, reg.K4, reg.K5}
	Load(Param("lanes"), t)
	for i, k := range exist {
		if i > 0 {
			SHRQ(Imm(16), t)
		}
		KMOVW(t.As32(), k)
	}
	Load(Param("channels"), count)
	Load(Param("src"), src)
	Load(Param("plane"), plane)
	Load(Param("pieces"), table)
	Load(Param("rows"), rows)
	Load(Param("dst"), dst)
	Load(Param("dp"), dp)
	Load(Param("fp"), fp)
	places := multiples(fp, reg.R11, reg.R12)
	Label("channel")
	for v := range 4 {
		d := z[8*(v%2):][:8]
		for r := range 6 {
			for i := range pieces {
				at, k := Mem{Base: table, Disp: pieceSize * ((4*r+v)*pieces + i)}, masksK[i%2]
				MOVQ(at, t)
				KMOVW(at.Offset(8), k)
				if m := (Mem{Base: src, Index: t, Scale: 1}); i == 0 {
					VMOVUPS_Z(m, k, d[r])
				} else {
					VMOVUPS(m, k, d[r])
				}
			}
		}
		for r, x := range wino4Values(d[:6], d[6:8], factors) {
			VMOVUPS(x, Mem{Base: rows, Disp: 64 * (4*r + v)})
		}
	}
	MOVQ(dst, t)
	for r := range 6 {
		twos := [2][]reg.VecPhysical{z[0:3], z[3:6]} // of columns, of half the tiles
		for h, x := range twos {
			first, second := Mem{Base: rows, Disp: 64 * (4*r + 2*h)}, Mem{Base: rows, Disp: 64 * (4*r + 2*h + 1)}
			for i, v := range x {
				VMOVUPS(first, v)
				VPERMT2PS_Z(second, columns[i], exist[i], v)
			}
		}
		d := z[8:14]
		for i, v := range twos[0] {
			VMOVAPS(v, d[2*i])
			VPERMT2PS(twos[1][i], halves[0], d[2*i])
			VMOVAPS(v, d[2*i+1])
			VPERMT2PS(twos[1][i], halves[1], d[2*i+1])
		}
		to := places(t)
		for c, v := range wino4Values(d, z[14:16], factors) {
			VMOVUPS(v, to[c])
		}
		sixFurther(to, r, t)
	}
	ADDQ(plane, src)
	ADDQ(dp, dst)
	DECQ(count)
	JNE(LabelRef("channel"))
	VZEROUPPER()
	RET()
}

// wino4Pixels makes Aᵀ·m of six values in place, with one vector more. The factors are as for wino4Values.
func wino4Pixels(m []reg.VecPhysical, t reg.VecPhysical, factors []reg.VecPhysical) []reg.VecPhysical {
	a, b, a2, b2 := factors[0], factors[1], factors[2], factors[3]
	VADDPS(m[2], m[1], t)    // sum of ±a
	VSUBPS(m[2], m[1], m[2]) // difference
	VADDPS(m[4], m[3], m[1]) // sum of ±b
	VSUBPS(m[4], m[3], m[4]) // difference
	VFNMADD231PS(b, t, m[0])
	VFMADD231PS(a, m[1], m[0])
	VSUBPS(m[2], m[4], m[3])
	VMULPS(a, t, t)
	VFMSUB213PS(t, b, m[1])
	VFNMADD231PS(a2, m[2], m[5])
	VFMADD231PS(b2, m[4], m[5])
	return []reg.VecPhysical{m[0], m[3], m[1], m[5]}
}

// wino4Output writes the way back: 4x4 pixels of each of 16 tiles, of each channel, to the pieces of four vectors in four
// rows. index says for the first and the second two vectors where their tiles' first two columns are.
func wino4Output(pieces int) {
	avx512.kernel(fmt.Sprintf("wino4Output%d", pieces),
		"func(channels int, src *float32, sp, fp int, bias *float32, dst *float32, plane int, pieces *int64, index *int32)",
		"makes pixels, and adds each channel's bias, of 36 values a tile.")
	z := avx512.v
	count, src, sp, fp, bias, dst, plane, table, t, index := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.R10, reg.RDI, reg.R8, reg.R9, reg.RAX, reg.R13
	factors := z[28:32]
	broadcast(pixelFactors, factors)
	Load(Param("channels"), count)
	Load(Param("src"), src)
	Load(Param("sp"), sp)
	Load(Param("fp"), fp)
	Load(Param("bias"), bias)
	Load(Param("dst"), dst)
	Load(Param("plane"), plane)
	Load(Param("pieces"), table)
	Load(Param("index"), index)
	places := multiples(fp, reg.R11, reg.R12)
	Label("channel")
	MOVQ(src, t)
	var x [6][]reg.VecPhysical // of each row the four columns
	free := z[:28]
	for r := range 6 {
		m := free[:7]
		from := places(t)
		for c, v := range m[:6] {
			VMOVUPS(from[c], v)
		}
		sixFurther(from, r, t)
		x[r] = wino4Pixels(m[:6], m[6], factors)
		free = append([]reg.VecPhysical{m[2], m[4], m[6]}, free[7:]...)
	}
	var y [4][4]reg.VecPhysical
	for c := range 4 {
		var m []reg.VecPhysical
		for r := range 6 {
			m = append(m, x[r][c])
		}
		for r, v := range wino4Pixels(m, free[0], factors) {
			y[r][c] = v
		}
		free = append(free, m[2], m[4])
	}
	TESTQ(bias, bias)
	JE(LabelRef("noBias"))
	VBROADCASTSS(Mem{Base: bias}, free[0])
	ADDQ(Imm(4), bias)
	for _, row := range y {
		for _, v := range row {
			VADDPS(free[0], v, v)
		}
	}
	Label("noBias")
	halves, low, high, v := free[0:2], free[2], free[3], free[4:8]
	VMOVDQU32(Mem{Base: index}, halves[0])
	VMOVDQU32(Mem{Base: index, Disp: 64}, halves[1])
	VMOVDQU32(foursLower, low)
	VMOVDQU32(foursUpper, high)
	for r, row := range y {
		for h := range 2 {
			first, rest := v[0], v[1] // two columns each
			VMOVAPS(row[0], first)
			VPERMT2PS(row[1], halves[h], first)
			VMOVAPS(row[2], rest)
			VPERMT2PS(row[3], halves[h], rest)
			VMOVAPS(first, v[2])
			VPERMT2PS(rest, low, v[2])
			VPERMT2PS(rest, high, first)
			for j, v := range []reg.VecPhysical{v[2], first} {
				for i := range pieces {
					at, k := Mem{Base: table, Disp: pieceSize * ((4*r+2*h+j)*pieces + i)}, masksK[i%2]
					MOVQ(at, t)
					KMOVW(at.Offset(8), k)
					VMOVUPS(v, k, Mem{Base: dst, Index: t, Scale: 1})
				}
			}
		}
	}
	ADDQ(sp, src)
	ADDQ(plane, dst)
	DECQ(count)
	JNE(LabelRef("channel"))
	VZEROUPPER()
	RET()
}

// wino4Weights writes the transform of n weights of 9 taps, of some channels, to 36 values each, where the channels are
// side by side. See nineTaps for where they are.
func wino4Weights() {
	avx512.kernel("wino4Weights", "func(n int, src *float32, places *int64, next int, dst *float32, rows, fp int)",
		"transforms n weights of each of up to 16 channels.")
	z := avx512.v
	n, src, next, where, dst, rows, fp, t, ahead := reg.RCX, reg.RSI, reg.R8, reg.R9, reg.RDI, reg.RDX, reg.RBX, reg.RAX, reg.R10
	Load(Param("rows"), rows)
	lanesMask(rows, t, reg.K1)
	SHLQ(Imm(2), rows)
	factors := z[29:32]
	broadcast(tapFactors, factors)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("next"), next)
	Load(Param("places"), where)
	Load(Param("dst"), dst)
	Load(Param("fp"), fp)
	places := multiples(fp, reg.R11, reg.R12)
	Label("weight")
	g := nineTaps(src, where, next, ahead, t)
	// expand makes G·g of three values, of which it takes the second's place, too.
	expand := func(g, to []reg.VecPhysical) []reg.VecPhysical {
		one, a, b := factors[0], factors[1], factors[2]
		VMULPS(b, g[0], to[0])
		VMULPS(a, g[0], to[1])
		VMULPS(one, g[1], to[2])
		VFMADD231PS(a, g[2], to[0])
		VFMADD231PS(b, g[2], to[1])
		VADDPS(to[2], to[0], g[1])
		VSUBPS(to[2], to[0], to[0])
		VADDPS(to[2], to[1], to[3])
		VSUBPS(to[2], to[1], to[1])
		return []reg.VecPhysical{g[0], g[1], to[0], to[3], to[1], g[2]}
	}
	var columns [3][]reg.VecPhysical
	for c := range 3 {
		columns[c] = expand([]reg.VecPhysical{g[c], g[3+c], g[6+c]}, z[9+4*c:][:4])
	}
	MOVQ(dst, t)
	for r := range 6 {
		to := places(t)
		for c, v := range expand([]reg.VecPhysical{columns[0][r], columns[1][r], columns[2][r]}, z[21+4*(r%2):][:4]) {
			VMOVUPS(v, reg.K1, to[c])
		}
		sixFurther(to, r, t)
	}
	ADDQ(next, src)
	ADDQ(rows, dst)
	DECQ(n)
	JNE(LabelRef("weight"))
	VZEROUPPER()
	RET()
}

// wino4Gradient writes the transform of n tiles of 4x4 gradients of 16 output channels, pixel bytes apart, which are on
// four lines.
func wino4Gradient() {
	avx512.kernel("wino4Gradient", "func(n int, src *float32, pixel, line int, dst *float32, fp int)",
		"transforms n tiles of 16 channels: 36 results, fp bytes apart.")
	z := avx512.v
	n, src, pixel, line, dst, fp, t := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.RDI, reg.R8, reg.RAX
	factors := z[27:32]
	broadcast(pixelFactors, factors[:4])
	broadcast(pixelFactors.Offset(20), factors[4:])
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("pixel"), pixel)
	Load(Param("line"), line)
	Load(Param("dst"), dst)
	Load(Param("fp"), fp)
	lines := multiples(line, reg.R9, reg.R10)
	places := multiples(fp, reg.R11, reg.R12)
	Label("tile")
	// expand makes A·y of four values, with two vectors that it gives back, too, and one more.
	expand := func(y, t []reg.VecPhysical) []reg.VecPhysical {
		a, b, a2, b2, minus := factors[0], factors[1], factors[2], factors[3], factors[4]
		VMULPS(minus, y[0], t[0])
		VMOVAPS(y[1], t[1])
		VMULPS(b, y[2], t[2])
		VFNMADD231PS(a, y[2], t[0])
		VFNMSUB231PS(a2, y[3], t[1])
		VFMADD231PS(a, y[0], t[2])
		VFMADD231PS(b2, y[3], y[1])
		VADDPS(t[1], t[0], y[2])
		VSUBPS(t[1], t[0], t[0])
		VADDPS(y[1], t[2], t[1])
		VSUBPS(y[1], t[2], y[1])
		return []reg.VecPhysical{y[0], y[2], t[0], t[1], y[1], y[3]}
	}
	var columns [4][]reg.VecPhysical
	for c := range 4 {
		v := z[6*c:][:6]
		from := lines(src)
		for r, m := range from[:4] {
			VMOVUPS(m, v[r])
		}
		ADDQ(pixel, src)
		columns[c] = expand(v[:4], []reg.VecPhysical{v[4], v[5], z[24]})
	}
	MOVQ(dst, t)
	for r := range 6 {
		to := places(t)
		for c, v := range expand([]reg.VecPhysical{columns[0][r], columns[1][r], columns[2][r], columns[3][r]}, z[24:27]) {
			VMOVUPS(v, to[c])
		}
		sixFurther(to, r, t)
	}
	ADDQ(pixel, dst)
	DECQ(n)
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// wino4WeightsBack writes the way from 36 sums to the gradients of 9 taps, for 16 output channels side by side.
func wino4WeightsBack() {
	avx512.kernel("wino4WeightsBack", "func(n int, src *float32, sp, fp int, dst *float32)",
		"makes 9 taps, sp bytes apart, of n times 16 channels of 36 sums each.")
	z := avx512.v
	n, src, sp, fp, dst, t := reg.RCX, reg.RSI, reg.RDX, reg.RBX, reg.RDI, reg.RAX
	factors := z[29:32]
	broadcast(tapFactors, factors)
	Load(Param("n"), n)
	Load(Param("src"), src)
	Load(Param("sp"), sp)
	Load(Param("fp"), fp)
	Load(Param("dst"), dst)
	places := multiples(fp, reg.R11, reg.R12)
	Label("weight")
	// back makes Gᵀ·m of six values in place, with one vector more.
	back := func(m []reg.VecPhysical, t reg.VecPhysical) []reg.VecPhysical {
		one, a, b := factors[0], factors[1], factors[2]
		VADDPS(m[2], m[1], t)
		VSUBPS(m[2], m[1], m[1])
		VADDPS(m[4], m[3], m[2])
		VSUBPS(m[4], m[3], m[3])
		VADDPS(m[3], m[1], m[1])
		VMULPS(one, m[1], m[1])
		VFMADD231PS(b, t, m[0])
		VFMADD231PS(a, t, m[5])
		VFMADD231PS(a, m[2], m[0])
		VFMADD231PS(b, m[2], m[5])
		return []reg.VecPhysical{m[0], m[1], m[5]}
	}
	MOVQ(src, t)
	var x [6][]reg.VecPhysical // of each row the three columns
	free := z[:29]
	for r := range 6 {
		m := free[:7]
		from := places(t)
		for c, v := range m[:6] {
			VMOVUPS(from[c], v)
		}
		sixFurther(from, r, t)
		x[r] = back(m[:6], m[6])
		free = append([]reg.VecPhysical{m[2], m[3], m[4], m[6]}, free[7:]...)
	}
	var w [3][3]reg.VecPhysical
	for c := range 3 {
		var m []reg.VecPhysical
		for r := range 6 {
			m = append(m, x[r][c])
		}
		for r, v := range back(m, free[0]) {
			w[r][c] = v
		}
	}
	for _, row := range w {
		for _, v := range row {
			VMOVUPS(v, Mem{Base: dst})
			ADDQ(sp, dst)
		}
	}
	ADDQ(sp, src)
	DECQ(n)
	JNE(LabelRef("weight"))
	VZEROUPPER()
	RET()
}
