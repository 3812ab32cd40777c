package cuda

import (
	"maps"
	"math"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
	_ "github.com/snug-ml/snug/internal/host"
)

// A device has the kernels that the host has, and takes the same arguments. Without the one
// that adds to a gradient where it is made, that is two kernels.
func TestKernelsOfTheHost(t *testing.T) {
	for _, name := range driver.Names("cpu") {
		if name == "conv backward weights add" {
			continue
		}
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

// What is one operation goes over its data as often as it must, with the sums that it puts
// together last: statistics and norm with ReLU of a batch, with or without what is added;
// a layer norm in one pass; losses with their softmax; attention and no matrix of scores.
func TestFusedLaunches(t *testing.T) {
	array := func(d driver.DType, shape ...int) driver.Array {
		return driver.Array{Type: d, Shape: shape, Strides: driver.RowMajor(shape), Data: make([]byte, driver.Numel(shape)*d.Size())}
	}
	f32 := func(shape ...int) driver.Array { return array(driver.Float32, shape...) }
	const n, c = 1 << 10, 8
	x, of := f32(4, c, 32, 32), f32(c)
	rows, logits, target, sum := f32(n), f32(n, 100), array(driver.Int64, n), f32()
	q, lse := f32(2, 3, 256, 64), f32(2, 3, 256)
	ln := []driver.Array{f32(n, 1, 64), f32(1), f32(1)}
	for _, k := range []struct {
		name     string
		f        []float64
		in, out  []driver.Array
		launches int
	}{
		{"batch norm", []float64{1e-5, math.Inf(1)}, []driver.Array{x, of, of, of, of}, []driver.Array{x}, 2},
		{"batch norm", []float64{1e-5, math.Inf(1)}, []driver.Array{x, of, of, of, of, x}, []driver.Array{x}, 2},
		{"group norm", []float64{1, 1e-5}, ln, []driver.Array{ln[0], rows, rows}, 1},
		{"softmax", []float64{100, 1}, []driver.Array{logits}, []driver.Array{logits}, 1},
		{"cross entropy", []float64{0, 0}, []driver.Array{logits, target, array(driver.Float64)}, []driver.Array{sum, rows}, 3},
		{"attention", []float64{1}, []driver.Array{q, q, q}, []driver.Array{q, lse}, 1},
		{"attention backward", []float64{1}, []driver.Array{q, q, q, q, lse, q}, []driver.Array{q, q, q}, 3},
	} {
		launches, total := counting{}, 0
		kernel, err := driver.Find(k.name, driver.Float32, backend)
		if err != nil {
			t.Fatal(err)
		}
		a := &driver.Args{Queue: Queue(launches), F: k.f, In: k.in, Out: k.out}
		var work int64
		if kernel.Workspace != nil {
			work = kernel.Workspace(a)
			a.Work = make([]byte, work)
		}
		kernel.Run(a)
		for _, n := range launches {
			total += n
		}
		if most := int64(q.Len()); total != k.launches || work > most {
			t.Errorf("%s of %d: %v and %d bytes to work in, want %d launches and at most %d", k.name, k.in[0].Len(), launches, work, k.launches, most)
		}
	}
}
