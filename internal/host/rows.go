package host

import (
	"slices"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

// number is what rows compute in.
type number interface{ float32 | float64 | int64 }

// row is an elementwise operation on runs of equal length: dst from x, y and z, those
// not used nil. dst may be one of them. f are the kernel's numbers.
type row[T number] func(f []float64, dst, x, y, z []T)

// elementwise registers an operation for all floats. Its inputs may be of any strides and
// are broadcast to the output, which may be the first input.
func elementwise(name string, f32 row[float32], f64 row[float64]) {
	driver.Register(name, driver.Float32, backend, rows(f32))
	driver.Register(name, driver.Float64, backend, rows(f64))
	driver.Register(name, driver.BFloat16, backend, rows(f32))
	driver.Register(name, driver.Float16, backend, rows(f32))
}

// vector and vector2 are rows of package kern, of one and two inputs.
func vector(f func(dst, x []float32)) row[float32] {
	return func(_ []float64, dst, x, _, _ []float32) { f(dst, x) }
}

func vector2(f func(dst, x, y []float32)) row[float32] {
	return func(_ []float64, dst, x, y, _ []float32) { f(dst, x, y) }
}

// f32 is v itself where T is float32, for which package kern has vector code, else nil.
func f32[T number](v []T) []float32 {
	f, _ := any(v).([]float32)
	return f
}

// comparison registers an operation on floats, integers and bool that gives 1 or 0.
func comparison(name string, f32 row[float32], f64 row[float64], i64 row[int64]) {
	elementwise(name, f32, f64)
	for _, t := range []driver.DType{driver.Int64, driver.Int32, driver.Uint8, driver.Bool} {
		driver.Register(name, t, backend, rows(i64))
	}
}

// selection registers an operation on all types whose last input is a mask.
func selection(name string, f32 row[float32], f64 row[float64], i64 row[int64]) {
	for t := driver.Float32; t <= driver.Bool; t++ {
		k := rows(f32)
		switch {
		case t == driver.Float64:
			k = rows(f64)
		case !t.Float():
			k = rows(i64)
		}
		k.Mixed = true
		driver.Register(name, t, backend, k)
	}
}

func rows[T number](f row[T]) driver.Kernel {
	buffers := &sync.Pool{New: func() any { return new([4][chunk]T) }}
	return driver.Kernel{Strided: true, Run: func(a *driver.Args) { each(a, f, buffers) }}
}

// chunk is how many elements are gathered at a time where an operand has gaps or another
// type: four of them stay in the first-level cache.
const chunk = 512

// large results, in elements, are written past the caches: what reads them next would find
// little of them there.
const large = 1 << 20

// resultGrain is how many of a result's n elements a thread takes at a time.
func resultGrain(n int) int {
	if n >= large {
		return kern.Past
	}
	return grain
}

// each runs f over all elements. An operand that lies as the output does is used where
// it is; others pass through a buffer.
func each[T number](a *driver.Args, f row[T], buffers *sync.Pool) {
	v, direct := directly[T](a)
	switch n := a.Out[0].Len(); {
	case n == 0:
	case !direct:
		gathered(a, f, buffers)
	case n <= grain:
		f(a.F, v[0], v[1], v[2], v[3])
	default:
		part := func(v []T, lo, hi int) []T {
			if v == nil {
				return nil
			}
			return v[lo:hi]
		}
		par.Range(a.Threads, n, resultGrain(n), func(lo, hi int) {
			f(a.F, v[0][lo:hi], part(v[1], lo, hi), part(v[2], lo, hi), part(v[3], lo, hi))
		})
	}
}

// directly is the output and the inputs, if each of them lies so already. The commonest
// case of all allocates nothing.
func directly[T number](a *driver.Args) (v [4][]T, ok bool) {
	out := &a.Out[0]
	v[0], ok = typed[T](out)
	if !ok || !out.Contiguous() {
		return v, false
	}
	n := out.Len()
	v[0] = v[0][:n]
	for i := range a.In {
		in := &a.In[i]
		t, ok := typed[T](in)
		if !ok || !slices.Equal(in.Shape, out.Shape) || !in.Contiguous() {
			return v, false
		}
		v[i+1] = t[:n]
	}
	return v, true
}

func gathered[T number](a *driver.Args, f row[T], buffers *sync.Pool) {
	n := a.Out[0].Len()
	g := gathering[T]{f: f, numbers: a.F, buffers: buffers, out: newOperand[T](&a.Out[0], a.Out[0].Shape)}
	for i := range a.In {
		g.in[i] = newOperand[T](&a.In[i], a.Out[0].Shape)
	}
	if n <= grain {
		g.run(0, n)
		return
	}
	shared := g // what goroutines share is on the heap; small arrays don't come here
	par.Range(a.Threads, n, grain, shared.run)
}

type gathering[T number] struct {
	f       row[T]
	numbers []float64
	buffers *sync.Pool
	out     operand[T]
	in      [3]operand[T]
}

func (g *gathering[T]) run(lo, hi int) {
	buf := g.buffers.Get().(*[4][chunk]T)
	defer g.buffers.Put(buf)
	for at := lo; at < hi; at += chunk {
		end := min(at+chunk, hi)
		dst := buf[3][:end-at]
		if g.out.direct != nil {
			dst = g.out.direct[at:end]
		}
		g.f(g.numbers, dst, g.in[0].read(buf[0][:], at, end), g.in[1].read(buf[1][:], at, end), g.in[2].read(buf[2][:], at, end))
		if g.out.direct == nil {
			g.out.write(dst, at, end)
		}
	}
}

// operand is an array as elements of T in the order of the output.
type operand[T number] struct {
	direct         []T // where it lies so already
	shape, strides []int
	load           func(dst []T, off, stride int)
	store          func(src []T, off, stride int)
}

func newOperand[T number](a *driver.Array, shape []int) operand[T] {
	e := *a
	if !slices.Equal(a.Shape, shape) {
		e = driver.Expand(a, shape)
	}
	if t, ok := typed[T](&e); ok && e.Contiguous() {
		return operand[T]{direct: t[:e.Len()]}
	}
	o := operand[T]{load: load[T](&e), store: store[T](&e)}
	o.shape, o.strides = driver.Collapse(e.Shape, e.Strides)
	return o
}

func (o *operand[T]) read(buf []T, lo, hi int) []T {
	if o.direct != nil {
		return o.direct[lo:hi]
	}
	if o.load == nil {
		return nil
	}
	rest := buf[:hi-lo]
	driver.Runs(o.shape, o.strides, lo, hi, func(off, stride, n int) {
		o.load(rest[:n], off, stride)
		rest = rest[n:]
	})
	return buf[:hi-lo]
}

func (o *operand[T]) write(src []T, lo, hi int) {
	driver.Runs(o.shape, o.strides, lo, hi, func(off, stride, n int) {
		o.store(src[:n], off, stride)
		src = src[n:]
	})
}
