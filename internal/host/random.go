package host

import (
	"math"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	register("dropout", run(dropout[float32]), run(dropout[float64]))
	register("uniform", run(draw[float32](unit, kern.UniformRow)), run(draw[float64](unit, nil)))
	register("normal", run(draw[float32](boxMuller, kern.NormalRow)), run(draw[float64](boxMuller, nil)))
}

// dropout sets elements to 0 with probability F[0] and scales the others by 1/(1−p). It
// is its own gradient: the mask is drawn again from the same key.
func dropout[T float32 | float64](a *driver.Args) {
	x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	p, scale := a.F[0], T(1/(1-a.F[0]))
	par.Range(a.Threads, a.Out[0].Len(), grain, func(lo, hi int) {
		if y := f32(y); y != nil {
			withNumbers(a.Key, lo, hi, func(numbers []uint32, lo, hi int) {
				kern.DropRow(y[lo:hi], f32(x)[lo:hi], numbers, p, float32(scale))
			})
			return
		}
		for ; lo < hi; lo += 4 {
			bits := driver.Philox(a.Key, uint64(lo/4))
			for i := lo; i < min(lo+4, hi); i++ {
				if y[i] = 0; driver.Unit(bits[i-lo]) >= p {
					y[i] = x[i] * scale
				}
			}
		}
	})
}

var numbersOfChunk = sync.Pool{New: func() any { return new([chunk]uint32) }}

// withNumbers gives fn the numbers of a chunk of elements lo to hi at a time; 4 divides lo.
func withNumbers(key [3]uint64, lo, hi int, fn func(numbers []uint32, lo, hi int)) {
	numbers := numbersOfChunk.Get().(*[chunk]uint32)
	defer numbersOfChunk.Put(numbers)
	for ; lo < hi; lo += chunk {
		n := min(chunk, hi-lo)
		kern.Philox(numbers[:(n+3)/4*4], key, uint64(lo/4))
		fn(numbers[:(n+3)/4*4], lo, lo+n)
	}
}

// draw fills the output; F: scale, shift. In float32 its numbers are row's.
func draw[T float32 | float64](of func(bits [4]uint32) [4]float64, row func(dst []float32, numbers []uint32, scale, shift float64)) func(*driver.Args) {
	return func(a *driver.Args) {
		y := driver.Of[T](&a.Out[0])
		par.Range(a.Threads, a.Out[0].Len(), grain, func(lo, hi int) {
			if y := f32(y); y != nil {
				withNumbers(a.Key, lo, hi, func(numbers []uint32, lo, hi int) {
					row(y[lo:hi], numbers, a.F[0], a.F[1])
				})
				return
			}
			for ; lo < hi; lo += 4 {
				v := of(driver.Philox(a.Key, uint64(lo/4)))
				for i := lo; i < min(lo+4, hi); i++ {
					y[i] = T(v[i-lo]*a.F[0] + a.F[1])
				}
			}
		})
	}
}

func unit(bits [4]uint32) (v [4]float64) {
	for i, b := range bits {
		v[i] = driver.Unit(b)
	}
	return v
}

// boxMuller makes normal numbers in pairs (Box and Muller, 1958).
func boxMuller(bits [4]uint32) (v [4]float64) {
	for i := 0; i < 4; i += 2 {
		r := math.Sqrt(-2 * math.Log(1-driver.Unit(bits[i])))
		sin, cos := math.Sincos(2 * math.Pi * driver.Unit(bits[i+1]))
		v[i], v[i+1] = r*cos, r*sin
	}
	return v
}

// Draw computes an array's elements, which are numbered from first on, a multiple of 4: each by a function of its number
// and of numbers in [0,1) of its own, the k-th of which is that of i + k·2⁴⁰ in the key's stream. Each thread asks for a
// function of its own.
func Draw(a *driver.Array, key [3]uint64, first int, of func() func(i int, u func() float64) float64) {
	par.Range(0, a.Len(), grain, func(lo, hi int) {
		d := drawers.Get().(*drawer)
		defer drawers.Put(d)
		value, size := of(), a.Type.Size()
		for d.key = key; lo < hi; lo += chunk {
			d.n, d.from, d.made = min(chunk, hi-lo), first+lo, 0
			for d.i = range d.n {
				d.k = 0
				d.values[d.i] = value(d.from+d.i, d.next)
			}
			part := driver.Array{Type: a.Type, Shape: []int{d.n}, Strides: []int{1}, Data: a.Data[lo*size:]}
			store[float64](&part)(d.values[:d.n], 0, 1)
		}
	})
}

var drawers = sync.Pool{New: func() any {
	d := new(drawer)
	d.next = d.number
	return d
}}

// A drawer has the numbers of a chunk of elements, a row for each first, second... number of an element; rows are made
// when an element asks for one.
type drawer struct {
	key     [3]uint64
	from, n int // elements of the chunk
	i, k    int // what number of which element is next
	made    int // rows of this chunk
	rows    [][chunk]uint32
	values  [chunk]float64
	next    func() float64
}

func (d *drawer) number() float64 {
	if d.k == d.made {
		d.row()
	}
	u := driver.Unit(d.rows[d.k][d.i])
	d.k++
	return u
}

func (d *drawer) row() {
	if d.made == len(d.rows) {
		d.rows = append(d.rows, [chunk]uint32{})
	}
	kern.Philox(d.rows[d.made][:(d.n+3)/4*4], d.key, (uint64(d.from)+uint64(d.made)<<40)/4)
	d.made++
}
