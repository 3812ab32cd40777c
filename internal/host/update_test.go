package host

import (
	"fmt"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Steps of 4 M parameters, in bytes that are read and written: Adam, and what saves its memory.
func BenchmarkUpdate(b *testing.B) {
	const rows, cols = 4096, 1024
	const n = rows * cols
	of := func(t driver.DType, shape ...int) driver.Array {
		return driver.Array{Type: t, Shape: shape, Strides: driver.RowMajor(shape), Data: make([]byte, driver.Numel(shape)*t.Size())}
	}
	f := []float64{1e-3, 0, 0.9, 0.999, 1e-8, 0.1, 0.001, 0.01}
	for _, k := range []struct {
		name, kernel string
		t            driver.DType
		f            []float64
		states       []driver.Array
	}{
		{"adam", "adam", driver.Float32, f, []driver.Array{of(driver.Float32, n), of(driver.Float32, n)}},
		{"adam 8bit", "adam 8bit", driver.Float32, f, []driver.Array{of(driver.Uint8, n), of(driver.Float32, n/256), of(driver.Uint8, n), of(driver.Float32, n/256)}},
		{"adam bfloat16", "adam", driver.BFloat16, f, []driver.Array{of(driver.BFloat16, n), of(driver.BFloat16, n)}},
		{"adafactor", "adafactor", driver.Float32, []float64{1e-3, 1, 0.99, 1e-30, 1e-3, 1, 1, 256, 1024}, []driver.Array{of(driver.Float32, rows), of(driver.Float32, cols), of(driver.Float64, 4*n/256)}},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/T%d", k.name, threads), func(b *testing.B) {
				kernel, err := driver.Find(k.kernel, k.t, backend)
				if err != nil {
					b.Fatal(err)
				}
				w, g := of(k.t, rows, cols), of(k.t, rows, cols)
				write := store[float64](&g)
				v := make([]float64, 512)
				for i := 0; i < n; i += 512 {
					for j := range v {
						v[j] = float64((i/512+j)*7919%1000-500) / 1000
					}
					write(v, i, 1)
				}
				a := driver.Args{F: k.f, Key: [3]uint64{5, 6}, In: []driver.Array{g}, Out: append([]driver.Array{w}, k.states...), Threads: threads, Scale: 1}
				bytes := len(g.Data)
				for _, o := range a.Out {
					bytes += 2 * len(o.Data)
				}
				b.SetBytes(int64(bytes))
				for b.Loop() {
					kernel.Run(&a)
				}
			})
		}
	}
}
