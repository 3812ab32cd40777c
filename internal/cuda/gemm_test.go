package cuda

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// How products become calls of cuBLAS: what it can read as it lies, and in how many calls.
func TestProductsAsCalls(t *testing.T) {
	array := func(shape, strides []int) driver.Array {
		if strides == nil {
			strides = driver.RowMajor(shape)
		}
		return driver.Array{Shape: shape, Strides: strides}
	}
	const n = 128
	for _, c := range []struct {
		name          string
		x, y          driver.Array
		out           []int
		calls, batch  int
		ldx, ldy      int
		turned, other bool // x and y
	}{
		{name: "plain", x: array([]int{n, n}, nil), y: array([]int{n, 200}, nil), out: []int{n, 200}, calls: 1, batch: 1, ldx: n, ldy: 200},
		{name: "small", x: array([]int{8, n}, nil), y: array([]int{n, n}, nil), out: []int{8, n}},
		{name: "transposed", x: array([]int{n, n}, []int{1, n}), y: array([]int{n, 200}, []int{1, 150}), out: []int{n, 200}, calls: 1, batch: 1, ldx: n, ldy: 150, turned: true, other: true},
		{name: "columns of a wider matrix", x: array([]int{n, n}, []int{300, 1}), y: array([]int{n, n}, nil), out: []int{n, n}, calls: 1, batch: 1, ldx: 300, ldy: n},
		{name: "every second element", x: array([]int{n, n}, []int{2 * n, 2}), y: array([]int{n, n}, nil), out: []int{n, n}},
		{name: "one row for all", x: array([]int{n, n}, []int{0, 1}), y: array([]int{n, n}, nil), out: []int{n, n}},
		{name: "a batch with one y is one product", x: array([]int{4, n, n}, nil), y: array([]int{n, n}, nil), out: []int{4, n, n}, calls: 1, batch: 1, ldx: n, ldy: n},
		{name: "a batch with one x", x: array([]int{n, n}, nil), y: array([]int{4, n, n}, nil), out: []int{4, n, n}, calls: 1, batch: 4, ldx: n, ldy: n},
		{name: "two dimensions of a batch in one", x: array([]int{3, 4, n, n}, nil), y: array([]int{3, 4, n, n}, nil), out: []int{3, 4, n, n}, calls: 1, batch: 12, ldx: n, ldy: n},
		{name: "heads of attention", x: array([]int{3, 4, n, 64}, []int{n * 256, 64, 256, 1}), y: array([]int{3, 4, 64, n}, []int{n * 256, 64, 1, 256}), out: []int{3, 4, n, n}, calls: 3, batch: 4, ldx: 256, ldy: 256, other: true},
		{name: "too many calls", x: array([]int{33, 4, n, 64}, []int{n * 256, 64, 256, 1}), y: array([]int{33, 4, 64, n}, []int{n * 256, 64, 1, 256}), out: []int{33, 4, n, n}},
	} {
		a := &driver.Args{In: []driver.Array{c.x, c.y}, Out: []driver.Array{array(c.out, nil)}}
		p := newProduct(a)
		calls := p.gemms(a, false)
		if len(calls) != c.calls {
			t.Errorf("%s: %d calls, want %d", c.name, len(calls), c.calls)
			continue
		}
		if len(calls) == 0 {
			continue
		}
		g := calls[0]
		if g.batch != c.batch || g.x.ld != c.ldx || g.y.ld != c.ldy || g.x.transposed != c.turned || g.y.transposed != c.other {
			t.Errorf("%s: batch %d, rows %d and %d apart, transposed %v and %v; want %d, %d and %d, %v and %v", c.name,
				g.batch, g.x.ld, g.y.ld, g.x.transposed, g.y.transposed, c.batch, c.ldx, c.ldy, c.turned, c.other)
		}
		if work := p.parts(a); work < largeWork {
			t.Errorf("%s: a workspace of %d bytes, want %d or more", c.name, work, largeWork)
		}
	}
}

// Only convolutions that a library may compute get workspace for it.
func TestLibraryWork(t *testing.T) {
	v := convolution{n: 2, c: 64, h: 32, w: 32, o: 64, kh: 3, kw: 3, oh: 32, ow: 32, stride: 1, pad: 1, dilation: 1, groups: 1}
	images := int64(4 * 2 * 2 * 64 * 32 * 32)
	if got := v.libraryWork(driver.Float32); got != images/8 {
		t.Errorf("%d bytes, want %d", got, images/8)
	}
	deep := v
	deep.groups = 64
	if got := deep.libraryWork(driver.Float32); got != 0 {
		t.Errorf("channel by channel: %d bytes, want 0", got)
	}
	v.n = 1 << 10
	if got := v.libraryWork(driver.Float32); got != 8<<20 {
		t.Errorf("many images: %d bytes, want %d", got, 8<<20)
	}
}
