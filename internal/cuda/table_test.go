package cuda

import (
	"maps"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
	_ "github.com/snug-ml/snug/internal/host"
)

// A device has the kernels that the host has, and takes the same arguments.
func TestKernelsOfTheHost(t *testing.T) {
	for _, name := range driver.Names("cpu") {
		for dtype := driver.Float32; dtype <= driver.Bool; dtype++ {
			host, err := driver.Find(name, dtype, "cpu")
			if err != nil {
				continue
			}
			k, err := driver.Find(name, dtype, backend)
			switch {
			case err != nil:
				t.Error(err)
			case k.Strided != host.Strided || k.Mixed != host.Mixed:
				t.Errorf("%s of %s: strided %t, mixed %t; on the host %t, %t", name, dtype, k.Strided, k.Mixed, host.Strided, host.Mixed)
			}
		}
	}
}

// counting is a queue that runs nothing.
type counting map[string]int

func (c counting) Launch(l *Launch) error { c[l.Function]++; return nil }
func (c counting) Zero([]byte) error      { return nil }

// One launch steps as many parameters as have room in a table, and their norms take two.
func TestLaunchesOfMany(t *testing.T) {
	launches := counting{}
	array := func(n int) driver.Array {
		return driver.Array{Type: driver.Float32, Shape: []int{n}, Strides: []int{1}, Data: make([]byte, 16)}
	}
	group := func(name string, n int, f func(i int) []float64, states int) {
		t.Helper()
		k, err := driver.Find(name, driver.Float32, backend)
		if err != nil {
			t.Fatal(err)
		}
		var as []*driver.Args
		for i := range n {
			a := &driver.Args{Queue: Queue(launches), F: f(i), In: []driver.Array{array(1 << 15)}}
			for range 1 + states {
				a.Out = append(a.Out, array(1<<15))
			}
			if k.Workspace != nil {
				a.Work = make([]byte, k.Workspace(a))
			}
			as = append(as, a)
		}
		k.Group(as)
	}
	group("sgd", 60, func(int) []float64 { return []float64{0.1, 0} }, 0)
	group("adam", 161, func(i int) []float64 { return []float64{0.1, 0, 0.9, 0.99, 1e-8, 0.1, 0.01, float64(i%2) / 10} }, 2)
	group("adam 8bit", 51, func(int) []float64 { return []float64{0.1, 0, 0.9, 0.99, 1e-8, 0.1, 0.01, 0} }, 4)
	group("square sum", 161, func(int) []float64 { return nil }, 0)
	want := counting{"sgd_f32_f32": 1, "adam_f32_f32": 2 + 2, "adam_8bit_f32": 2, "square_sums_f32": 2, "square_sums_of_parts": 2}
	if !maps.Equal(launches, want) {
		t.Errorf("%v, want %v", launches, want)
	}
}
