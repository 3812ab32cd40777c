//go:build cuda

package cuda

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Convolutions that cuDNN computes agree with the host's.
func TestLibraryConvolutions(t *testing.T) {
	g := newAgreement(t)
	d := g.library(1)
	for _, dtype := range floats {
		tol := map[driver.DType]float64{driver.Float32: 1e-4, driver.Float64: 1e-13, driver.BFloat16: 1.0 / 64, driver.Float16: 1.0 / 512}[dtype]
		shapes := []convolution{
			{n: 2, c: 16, h: 25, w: 28, o: 24, kh: 3, kw: 3, stride: 1, pad: 1, dilation: 1, groups: 1},
			{n: 3, c: 16, h: 41, w: 32, o: 24, kh: 5, kw: 3, stride: 2, pad: 2, dilation: 1, groups: 1},
			{n: 2, c: 32, h: 32, w: 30, o: 32, kh: 3, kw: 3, stride: 1, pad: 0, dilation: 2, groups: 2},
		}
		if dtype != driver.Float32 {
			shapes = shapes[:1]
		}
		for _, v := range shapes {
			out := func(size, k int) int { return (size+2*v.pad-v.dilation*(k-1)-1)/v.stride + 1 }
			v.oh, v.ow = out(v.h, v.kh), out(v.w, v.kw)
			x := g.array(dtype, []int{v.n, v.c, v.h, v.w}, nil)
			w := g.array(dtype, []int{v.o, v.c / v.groups, v.kh, v.kw}, nil)
			y := g.array(dtype, []int{v.n, v.o, v.oh, v.ow}, nil)
			bias := g.array(dtype, []int{v.o}, nil)
			f := []float64{float64(v.stride), float64(v.pad), float64(v.dilation), float64(v.groups)}
			before := d.dnn.calls
			g.run("conv", tol, driver.Args{In: []driver.Array{x, w}, Out: []driver.Array{y}, F: f})
			g.run("conv", tol, driver.Args{In: []driver.Array{x, w, bias}, Out: []driver.Array{y}, F: f})
			g.run("conv backward data", tol, driver.Args{In: []driver.Array{y, w}, Out: []driver.Array{x}, F: f})
			g.run("conv backward weights", 10*tol, driver.Args{In: []driver.Array{x, y}, Out: []driver.Array{w}, F: f})
			if got := d.dnn.calls - before; got != 4 {
				t.Errorf("%s %+v: %d convolutions by cuDNN, want 4", dtype, v, got)
			}
		}
	}
}

// A library's algorithm that wants more workspace than the shapes give is not used.
func TestLibraryWorkspaceIsLimited(t *testing.T) {
	g := newAgreement(t)
	d := g.library(1)
	v := convolution{n: 1, c: 16, h: 32, w: 32, o: 16, kh: 3, kw: 3, oh: 32, ow: 32, stride: 1, pad: 1, dilation: 1, groups: 1}
	x, w, y := g.take(4*16*32*32), g.take(4*16*16*9), g.take(4*16*32*32)
	for pass, want := range []bool{forwardPass: true, dataPass: false, weightsPass: false} { // forward has one that wants none
		done, err := d.Convolve(&dnnCall{v, driver.Float32, pass, address(x), address(w), address(y), false, nil})
		if err != nil || done != want {
			t.Errorf("pass %d without workspace: %v, %v, want %v", pass, done, err, want)
		}
	}
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
}
