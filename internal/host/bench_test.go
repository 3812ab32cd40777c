package host

import (
	"fmt"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Kernels that read and write memory more than they compute, in bytes of their arrays, most
// of which are too large for caches.
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
	as := func(a driver.Array, shape ...int) driver.Array {
		a.Shape, a.Strides = shape, driver.RowMajor(shape)
		return a
	}
	// Each of x, y, … is 64 MiB.
	x, y, z, m := floats(64, 64, 64, 64), floats(64, 64, 64, 64), floats(64, 64, 64, 64), floats(64, 64, 64, 64)
	flat := func(a driver.Array) driver.Array { return as(a, a.Len()) }
	rows := func(a driver.Array) driver.Array { return as(a, 16384, 1024) }
	wide, channels := floats(1024), floats(64)
	positive := floats(x.Len())
	for i, v := range driver.Of[float32](&positive) {
		driver.Of[float32](&positive)[i] = v * v
	}
	maxima, where := floats(64, 64, 32, 32), small(driver.Uint8, 64, 64, 32, 32)
	window := []float64{3, 2, 1}
	classes := []float64{1024, 1}
	for _, k := range []struct {
		name    string
		f       []float64
		out, in []driver.Array
	}{
		{"add", nil, []driver.Array{y}, []driver.Array{x, z}},
		{"relu", nil, []driver.Array{y}, []driver.Array{x}},
		{"gelu", nil, []driver.Array{y}, []driver.Array{x}},
		{"gelu backward", nil, []driver.Array{y}, []driver.Array{x, z}},
		{"log", nil, []driver.Array{flat(y)}, []driver.Array{flat(x)}},
		{"dropout", []float64{0.1}, []driver.Array{flat(y)}, []driver.Array{flat(x)}},
		{"cast", nil, []driver.Array{small(driver.BFloat16, x.Len())}, []driver.Array{flat(x)}},
		{"square sum", nil, []driver.Array{small(driver.Float64, 1)}, []driver.Array{flat(x)}},
		{"softmax", classes, []driver.Array{rows(y)}, []driver.Array{rows(x)}},
		{"softmax backward", classes, []driver.Array{rows(y)}, []driver.Array{rows(x), rows(z)}},
		{"group norm", []float64{1, 1e-5}, []driver.Array{rows(y), floats(16384), floats(16384)}, []driver.Array{rows(x), wide, wide}}, // as layer norm
		{"mean variance", nil, []driver.Array{floats(64), floats(64)}, []driver.Array{x}},
		{"batch norm", []float64{1e-5, 0}, []driver.Array{y}, []driver.Array{x, channels, small(driver.Float32, 64), channels, channels}},
		{"max pool", window, []driver.Array{maxima, where}, []driver.Array{x}},
		{"max pool backward", window, []driver.Array{y}, []driver.Array{maxima, where}},
		{"average pool", nil, []driver.Array{floats(64, 64, 1, 1)}, []driver.Array{x}},
		{"cross entropy", []float64{0, 0}, []driver.Array{floats(1), floats(16384)}, []driver.Array{rows(x), places(1024, 16384), small(driver.Float64, 1)}},
		{"embedding backward", []float64{-1}, []driver.Array{floats(4096, 256)}, []driver.Array{floats(65536, 256), places(4096, 65536)}},
		{"adam", []float64{1e-3, 0, 0.9, 0.999, 1e-8, 0.1, 0.001, 0}, []driver.Array{flat(y), flat(m), positive}, []driver.Array{flat(x)}},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/T%d", k.name, threads), func(b *testing.B) {
				kernel, err := driver.Find(k.name, driver.Float32, backend)
				if err != nil {
					b.Fatal(err)
				}
				a := driver.Args{F: k.f, Key: [3]uint64{1, 2, 3}, Out: k.out, In: k.in, Threads: threads}
				bytes := 0
				for _, array := range append(k.out, k.in...) {
					bytes += len(array.Data)
				}
				if k.name == "adam" { // it reads what it writes
					bytes += 3 * len(positive.Data)
				}
				b.SetBytes(int64(bytes))
				kernel.Run(&a) // memory that nobody has touched yet is dear
				for b.Loop() {
					kernel.Run(&a)
				}
			})
		}
	}
}
