package kern

import (
	"unsafe"
)

//go:generate go -C gen run ./norm -out ../norm_amd64.s -stubs ../norm_stubs_amd64.go -pkg kern

// Planes are of equal length, one after the other, each of a channel of its own: as many as there are channels. They
// are gone through on one goroutine, in order. Those functions that have an argument ahead ask for the memory so many
// elements after, or before, that at hand, which is read next: where planes of other samples lie, processors do not see
// that by themselves. It may be beyond the ends.

// Channel has a channel's numbers. What is kept between Low and High is (x - Mean)·Scale + Shift.
type Channel[T float32 | float64] struct{ Mean, Scale, Shift, Low, High, P, Q T }

// Sums are two sums in parts.
type Sums [2][8]float64

// Total adds the parts.
func (s *Sums) Total() (a, b float64) {
	total := func(v *[8]float64) float64 { return v[0] + v[4] + (v[2] + v[6]) + (v[1] + v[5] + (v[3] + v[7])) }
	return total(&s[0]), total(&s[1])
}

// add is for element i of a plane; one sum alone would have to wait for itself.
func (s *Sums) add(i int, a, b float64) {
	s[0][i&7] += a
	s[1][i&7] += b
}

// vector tells how long each of the planes is, and whether there is vector code for them, which is for a channel at a
// time: too short planes are not worth it.
func vector[T float32 | float64](s []T, c []Channel[T]) (n int, ok bool) {
	n = len(s) / max(1, len(c))
	return n, n > 3 && len(c) > 0 && level >= avx2 && unsafe.Sizeof(T(0)) == 4
}

// toPlanes is what a kernel is told of the length of planes: it is negative where their stores go past the caches, as
// those of long rows do.
func toPlanes[T float32 | float64](n int, dst, x, y []T) int {
	d := single(dst)
	if len(dst) >= Past && n%16 == 0 && uintptr(unsafe.Pointer(d))%64 == 0 && d != single(x) && d != single(y) {
		n = -n
	}
	return n
}

func single[T float32 | float64](s []T) *float32 {
	return (*float32)(unsafe.Pointer(unsafe.SliceData(s)))
}

func numbers[T float32 | float64](c []Channel[T]) *float32 {
	return (*float32)(unsafe.Pointer(unsafe.SliceData(c)))
}

// NormPlanes is dst = (x - Mean)·Scale + Shift, rounded three times, but no less than Low and no more than High; a NaN
// stays one.
func NormPlanes[T float32 | float64](dst, x []T, c []Channel[T]) {
	x = x[:len(dst)]
	n, vec := vector(dst, c)
	if vec {
		normVec(len(c), toPlanes(n, dst, x, x), single(dst), single(x), numbers(c))
		return
	}
	for i := range c {
		k := &c[i]
		for j := i * n; j < i*n+n; j++ {
			dst[j] = min(max(T((x[j]-k.Mean)*k.Scale)+k.Shift, k.Low), k.High)
		}
	}
}

// NormAddPlanes is NormPlanes with y added before it is kept between Low and High.
func NormAddPlanes[T float32 | float64](dst, x, y []T, c []Channel[T]) {
	x, y = x[:len(dst)], y[:len(dst)]
	n, vec := vector(dst, c)
	if vec {
		normAddVec(len(c), toPlanes(n, dst, x, y), single(dst), single(x), single(y), numbers(c))
		return
	}
	for i := range c {
		k := &c[i]
		for j := i * n; j < i*n+n; j++ {
			dst[j] = min(max(T((x[j]-k.Mean)*k.Scale)+k.Shift+y[j], k.Low), k.High)
		}
	}
}

// NormBackPlanes is dst = Scale·dy + P·(x - Mean) + Q.
func NormBackPlanes[T float32 | float64](dst, dy, x []T, c []Channel[T], ahead int) {
	dy, x = dy[:len(dst)], x[:len(dst)]
	n, vec := vector(dst, c)
	if vec {
		normBackVec(len(c), n, single(dst), single(dy), single(x), numbers(c), ahead)
		return
	}
	for i := range c {
		k := &c[i]
		for j := i * n; j < i*n+n; j++ {
			dst[j] = T(k.Scale*dy[j]) + T(k.P*(x[j]-k.Mean)) + k.Q
		}
	}
}

// PassBackPlanes is NormBackPlanes with 0 for dy where NormPlanes is not between Low and High.
func PassBackPlanes[T float32 | float64](dst, dy, x []T, c []Channel[T], ahead int) {
	dy, x = dy[:len(dst)], x[:len(dst)]
	n, vec := vector(dst, c)
	if vec {
		passBackVec(len(c), n, single(dst), single(dy), single(x), numbers(c), ahead)
		return
	}
	for i := range c {
		k := &c[i]
		for j := i * n; j < i*n+n; j++ {
			d := x[j] - k.Mean
			dst[j] = T(k.Scale*k.pass(T(d*k.Scale)+k.Shift, dy[j])) + T(k.P*d) + k.Q
		}
	}
}

// pass is dy if y is between Low and High, else 0.
func (k *Channel[T]) pass(y, dy T) T {
	if k.Low < y && y < k.High {
		return dy
	}
	return 0
}

// MomentsPlanes adds Σ (x - Mean) and Σ (x - Mean)² of each plane, in an order that depends on its length only.
func MomentsPlanes[T float32 | float64](s []Sums, x []T, c []Channel[T], ahead int) {
	s = s[:len(c)]
	n, vec := vector(x, c)
	if vec {
		momentsVec(len(c), n, single(x), numbers(c), &s[0][0][0], ahead)
		return
	}
	for i := range c {
		k := &c[i]
		first := float64(k.Mean)
		for j := range n {
			at := i*n + j
			d := float64(x[at]) - first
			s[i].add(j, d, d*d)
		}
	}
}

// ProductsPlanes adds Σ dy and Σ dy·(x - Mean) of each plane, in an order that depends on its length only.
func ProductsPlanes[T float32 | float64](s []Sums, dy, x []T, c []Channel[T], ahead int) {
	x, s = x[:len(dy)], s[:len(c)]
	n, vec := vector(dy, c)
	if vec {
		productsVec(len(c), n, single(dy), single(x), numbers(c), &s[0][0][0], ahead)
		return
	}
	for i := range c {
		k := &c[i]
		for j := range n {
			at := i*n + j
			g := float64(dy[at])
			s[i].add(j, g, g*float64(x[at]-k.Mean))
		}
	}
}

// PassProductsPlanes is ProductsPlanes with 0 for dy where NormPlanes is not between Low and High.
func PassProductsPlanes[T float32 | float64](s []Sums, dy, x []T, c []Channel[T], ahead int) {
	x, s = x[:len(dy)], s[:len(c)]
	n, vec := vector(dy, c)
	if vec {
		passProductsVec(len(c), n, single(dy), single(x), numbers(c), &s[0][0][0], ahead)
		return
	}
	for i := range c {
		k := &c[i]
		for j := range n {
			at := i*n + j
			d := x[at] - k.Mean
			g := float64(k.pass(T(d*k.Scale)+k.Shift, dy[at]))
			s[i].add(j, g, g*float64(d))
		}
	}
}

// PassAddProductsPlanes is ProductsPlanes with dst for dy, which is dy, but 0 where NormAddPlanes is not between Low and
// High.
func PassAddProductsPlanes[T float32 | float64](s []Sums, dst, dy, x, y []T, c []Channel[T], ahead int) {
	dy, x, y, s = dy[:len(dst)], x[:len(dst)], y[:len(dst)], s[:len(c)]
	n, vec := vector(dst, c)
	if vec {
		passAddProductsVec(len(c), n, single(dst), single(dy), single(x), single(y), numbers(c), &s[0][0][0], ahead)
		return
	}
	for i := range c {
		k := &c[i]
		for j := range n {
			at := i*n + j
			d := x[at] - k.Mean
			dst[at] = k.pass(T(d*k.Scale)+k.Shift+y[at], dy[at])
			g := float64(dst[at])
			s[i].add(j, g, g*float64(d))
		}
	}
}
