package host

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// Vector code's maxima and places, at edges too, are those of the loop in Go, which float64 has: where no element is above
// -∞, where some are no numbers, and in rows that are too wide for a buffer.
func TestMaxPoolEdges(t *testing.T) {
	find := func(d driver.DType) driver.Kernel {
		k, err := driver.Find("max pool", d, backend)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	array := func(d driver.DType, data []byte, shape ...int) driver.Array {
		if data == nil {
			data = make([]byte, driver.Numel(shape)*d.Size())
		}
		return driver.Array{Type: d, Shape: shape, Strides: driver.RowMajor(shape), Data: data}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		kernel, stride := 2+r.IntN(3), 1+r.IntN(3)
		padding, h, w := r.IntN(kernel/2+1), kernel+r.IntN(6), kernel+r.IntN(80)
		if r.IntN(8) == 0 {
			w += 300
		}
		const n = 2
		single, double := make([]float32, n*h*w), make([]float64, n*h*w)
		for i := range single {
			switch r.IntN(4) {
			case 0, 1:
				single[i] = float32(math.Inf(-1))
			case 2:
				single[i] = float32(r.IntN(3))
			default:
				if single[i] = -1; r.IntN(8) == 0 {
					single[i] = float32(math.NaN())
				}
			}
			double[i] = float64(single[i])
		}
		oh, ow := (h+2*padding-kernel)/stride+1, (w+2*padding-kernel)/stride+1
		pool := func(d driver.DType, x []byte) (y, places driver.Array) {
			y, places = array(d, nil, n, oh, ow), array(driver.Uint8, nil, n, oh, ow)
			find(d).Run(&driver.Args{
				F: []float64{float64(kernel), float64(stride), float64(padding)}, Threads: 2,
				In: []driver.Array{array(d, x, n, h, w)}, Out: []driver.Array{y, places},
			})
			return y, places
		}
		got, gotPlaces := pool(driver.Float32, driver.Bytes(single))
		want, wantPlaces := pool(driver.Float64, driver.Bytes(double))
		for i, v := range driver.Of[float64](&want) {
			g, p, q := float64(driver.Of[float32](&got)[i]), gotPlaces.Data[i], wantPlaces.Data[i]
			if !(g == v || g != g && v != v) || p != q {
				t.Fatalf("%d by %d, kernel %d, stride %d, padding %d: window %d is %v at %d, want %v at %d", h, w, kernel, stride, padding, i, g, p, v, q)
			}
		}
	}
}
