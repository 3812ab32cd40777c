//go:build cuda

package cuda

import (
	"regexp"
	"strings"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// library skips the test where there is no cuBLAS (0), or no cuDNN (1).
func (g *agreement) library(i int) *Device {
	g.t.Helper()
	d := g.dev.(*Device)
	if has := d.Libraries()[i]; strings.HasPrefix(has, "no ") {
		g.t.Skip(has)
	}
	return d
}

// A library says its version and where it lies; without one stands what was tried.
func TestLibraries(t *testing.T) {
	for i, got := range openDevice(t).Libraries() {
		name := []string{"cuBLAS", "cuDNN"}[i]
		if !regexp.MustCompile(`^(no ` + name + `: .*lib|` + name + ` \d+\.\d+\.\d+, /)`).MatchString(got) {
			t.Errorf("%q", got)
		}
	}
}

// Products that cuBLAS computes agree with the host's, in every layout that it is given.
func TestLibraryProducts(t *testing.T) {
	g := newAgreement(t)
	d := g.library(0)
	const n = 128
	for _, dtype := range floats {
		tol := map[driver.DType]float64{driver.Float32: 1e-4, driver.Float64: 1e-12, driver.BFloat16: 1.0 / 64, driver.Float16: 1.0 / 512}[dtype]
		plain := func(shape ...int) driver.Array { return g.array(dtype, shape, nil) }
		turned := func(shape ...int) driver.Array { return g.transposed(dtype, shape, nil) }
		heads := func(b, t, h, w int) driver.Array { // as [b h t w], of [b t h w]
			a := g.array(dtype, []int{b, t, h, w}, nil)
			a.Shape, a.Strides = []int{b, h, t, w}, []int{a.Strides[0], a.Strides[2], a.Strides[1], a.Strides[3]}
			return a
		}
		for _, c := range []struct {
			name string
			in   []driver.Array
			out  driver.Array
		}{
			{"matmul", []driver.Array{plain(n, 150), plain(150, n)}, plain(n, n)},
			{"matmul", []driver.Array{turned(n, 150), plain(150, n)}, plain(n, n)},
			{"matmul", []driver.Array{plain(n, 150), turned(150, n)}, plain(n, n)},
			{"matmul", []driver.Array{turned(n, 150), turned(150, n)}, plain(n, n)},
			{"matmul", []driver.Array{g.window(dtype, n, 130), plain(130, n)}, plain(n, n)},
			{"matmul", []driver.Array{plain(n, 130), g.window(dtype, 130, n)}, plain(n, n)},
			{"matmul", []driver.Array{plain(4, n, 64), plain(64, n)}, plain(4, n, n)},
			{"matmul", []driver.Array{plain(n, 64), plain(4, 64, n)}, plain(4, n, n)},
			{"matmul", []driver.Array{plain(2, 1, n, 64), plain(3, 64, n)}, plain(2, 3, n, n)},
			{"matmul", []driver.Array{heads(2, n, 3, 64), heads(2, 64, 3, n)}, plain(2, 3, n, n)},
			{"matmul", []driver.Array{plain(1, 2048), plain(2048, 1100)}, plain(1, 1100)},
			{"matmul", []driver.Array{plain(1100, 2048), plain(2048, 1)}, plain(1100, 1)},
			{"matmul", []driver.Array{plain(n, 150), plain(150, n), plain(n)}, plain(n, n)},
			{"matmul add", []driver.Array{turned(n, 150), plain(150, n)}, plain(n, n)},
			{"matmul add", []driver.Array{plain(n, 150), turned(150, n)}, g.window(dtype, n, n)},
		} {
			before := d.blas.calls
			g.run(c.name, tol, driver.Args{In: c.in, Out: []driver.Array{c.out}})
			if d.blas.calls == before {
				t.Errorf("%s of %s: not by cuBLAS", c.name, describe(c.in))
			}
		}
	}
}

// TF32 has 10 bits of fraction, and is used only when it was asked for.
func TestTF32(t *testing.T) {
	const n, eps = 128, 1.0 / (1 << 12)
	for _, on := range []bool{false, true} {
		g := newAgreement(t)
		d := g.library(0)
		want := float64(n) * (1 + eps)
		if on {
			d.UseTF32()
			want = n
		}
		x := g.clone(g.array(driver.Float32, []int{n, n}, func() float64 { return 1 + eps }), true)
		y := g.clone(g.array(driver.Float32, []int{n, n}, func() float64 { return 1 }), true)
		out := g.clone(g.array(driver.Float32, []int{n, n}, nil), true)
		k, err := driver.Find("matmul", driver.Float32, backend)
		if err != nil {
			t.Fatal(err)
		}
		a := driver.Args{In: []driver.Array{x, y}, Out: []driver.Array{out}, Queue: d.Queue()}
		a.Work = g.take(int(k.Workspace(&a)))
		k.Run(&a)
		got := make([]float32, n*n)
		if err := d.Download(driver.Bytes(got), out.Data); err != nil || a.Err != nil {
			t.Fatal(err, a.Err)
		}
		if float64(got[n]) != want {
			t.Errorf("TF32 %v: %v, want %v", on, got[n], want)
		}
	}
}
