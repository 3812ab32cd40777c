package host

import (
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
)

// stepOperand is an array that a step reads and writes in runs: where they lie, or for
// another type through a buffer.
type stepOperand[T float32 | float64] struct {
	direct []T
	load   func(dst []T, off, stride int)
	store  func(src []T, at int)
	scale  T // of what is read; 0: none
}

// newStepOperand is of operand i: 0 is the gradient, then come weights and states. bfloat16
// is rounded stochastically where the step has a key: of a seed with the parameter's name,
// and the number of the step, which is never 0.
func newStepOperand[T float32 | float64](a *driver.Args, i int) (o stepOperand[T]) {
	x := &a.In[0]
	if i > 0 {
		x = &a.Out[i-1]
	} else if a.Scale != 1 {
		o.scale = T(a.Scale)
	}
	if t, ok := typed[T](x); ok {
		o.direct = t
		return o
	}
	o.load = load[T](x)
	if x.Type == driver.BFloat16 && a.Key[1] != 0 {
		key := [3]uint64{a.Key[0], a.Key[1], uint64(i)}
		dst := driver.Of[driver.B16](x)
		o.store = func(v []T, at int) { roundRow(dst[at:at+len(v)], v, key, at) }
	} else {
		write := store[T](x)
		o.store = func(v []T, at int) { write(v, at, 1) }
	}
	return o
}

func (o *stepOperand[T]) read(buf []T, lo, hi int) []T {
	if o.direct != nil && o.scale == 0 {
		return o.direct[lo:hi]
	}
	v := buf[:hi-lo]
	if o.direct != nil {
		scaled(v, o.direct[lo:hi], o.scale)
	} else if o.load(v, lo, 1); o.scale != 0 {
		scaled(v, v, o.scale)
	}
	return v
}

// write writes what was read at.
func (o *stepOperand[T]) write(v []T, at int) {
	if o.store != nil {
		o.store(v, at)
	}
}

// roundRow rounds elements that are number at and on of their array. Element i has the
// i%8-th 16 bits of block i/8.
func roundRow[T number](dst []driver.B16, src []T, key [3]uint64, at int) {
	const most = 512
	var numbers [most / 2]uint32
	var buf [8]float32 // of one block
	var rounded [8]driver.B16
	for len(src) > 0 {
		if v := f32(src); v != nil && at%8 == 0 {
			n := min(most, len(v))
			kern.Philox(numbers[:(n+7)/8*4], key, uint64(at/8))
			kern.RoundRow(dst[:n], v[:n], numbers[:])
			dst, src, at = dst[n:], src[n:], at+n
			continue
		}
		b := driver.Philox(key, uint64(at/8))
		n := min(8-at%8, len(src))
		for i, x := range src[:n] {
			buf[at%8+i] = float32(x)
		}
		kern.RoundRow(rounded[:], buf[:], b[:])
		copy(dst[:n], rounded[at%8:])
		dst, src, at = dst[n:], src[n:], at+n
	}
}
