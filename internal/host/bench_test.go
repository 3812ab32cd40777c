package host

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Kernels that read and write memory more than they compute, in bytes of their arrays: those
// of the sizes that models have.
func BenchmarkMemory(b *testing.B) {
	floats := func(shape ...int) driver.Array {
		v := make([]float32, driver.Numel(shape))
		for i := range v {
			v[i] = float32(i%97)/50 - 0.9
		}
		return driver.Array{Type: driver.Float32, Shape: shape, Strides: driver.RowMajor(shape), Data: driver.Bytes(v)}
	}
	places := func(below int, shape ...int) driver.Array {
		v := make([]int64, driver.Numel(shape))
		for i := range v {
			v[i] = int64(i * 7 % below)
		}
		return driver.Array{Type: driver.Int64, Shape: shape, Strides: driver.RowMajor(shape), Data: driver.Bytes(v)}
	}
	small := func(t driver.DType, n ...int) driver.Array {
		return driver.Array{Type: t, Shape: n, Strides: driver.RowMajor(n), Data: make([]byte, driver.Numel(n)*t.Size())}
	}
	x := floats(16, 64, 112, 112)
	flat := []int{x.Len()}
	one := floats(flat...)
	maxima := floats(16, 64, 56, 56)
	where := small(driver.Uint8, 16, 64, 56, 56)
	window := []float64{3, 2, 1}
	wide := floats(1024, 4096)
	for _, k := range []struct {
		name    string
		f       []float64
		out, in []driver.Array
	}{
		{"relu", nil, []driver.Array{x}, []driver.Array{x}},
		{"log", nil, []driver.Array{floats(flat...)}, []driver.Array{one}},
		{"dropout", []float64{0.1}, []driver.Array{floats(flat...)}, []driver.Array{one}},
		{"square sum", nil, []driver.Array{small(driver.Float64, 1)}, []driver.Array{one}},
		{"max pool", window, []driver.Array{maxima, where}, []driver.Array{x}},
		{"max pool backward", window, []driver.Array{x}, []driver.Array{maxima, where}},
		{"average pool", nil, []driver.Array{floats(16, 64, 1, 1)}, []driver.Array{x}},
		{"softmax backward", []float64{4096, 1}, []driver.Array{floats(1024, 4096)}, []driver.Array{wide, wide}},
		{"cross entropy", []float64{0, 0}, []driver.Array{floats(1), floats(1024)}, []driver.Array{wide, places(4096, 1024), small(driver.Float64, 1)}},
		{"embedding backward", []float64{-1}, []driver.Array{floats(4096, 256)}, []driver.Array{floats(16384, 256), places(4096, 16384)}},
	} {
		b.Run(k.name, func(b *testing.B) {
			kernel, err := driver.Find(k.name, driver.Float32, backend)
			if err != nil {
				b.Fatal(err)
			}
			a := driver.Args{F: k.f, Key: [3]uint64{1, 2, 3}, Out: k.out, In: k.in}
			bytes := 0
			for _, array := range append(k.out, k.in...) {
				bytes += len(array.Data)
			}
			b.SetBytes(int64(bytes))
			for b.Loop() {
				kernel.Run(&a)
			}
		})
	}
}
