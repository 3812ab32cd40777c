package cuda

import (
	"math/bits"

	"github.com/snug-ml/snug/internal/driver"
)

// reduction is struct Reduction of reduce.cuh: how sums of m values each are made.
type reduction struct{ n, m, lanes, step, each int }

// newReduction makes n sums of m values each, which lie beside those of the next sum
// rather than beside each other, if beside. Neither n nor where values lie is to change the
// bits of a sum more than it must.
func newReduction(n, m int, beside bool) reduction {
	const most = 64 // values that a thread adds up
	d := reduction{n: n, m: m, lanes: 1, step: 1}
	switch {
	case m <= most/2:
	case beside:
		d.lanes = 8
	default:
		d.lanes = min(threads, max(32, 1<<bits.Len(uint(m/8))))
	}
	if beside {
		d.step = threads / d.lanes
	}
	d.each = d.lanes * most
	return d
}

func (d reduction) words() []uint64 {
	return []uint64{uint64(d.n), uint64(d.m), uint64(d.lanes), uint64(d.step), uint64(d.each)}
}

// parts are what each sum is put together of.
func (d reduction) parts() int { return max(1, (d.m+d.each-1)/d.each) }

// next adds up the parts, which lie as rows of n.
func (d reduction) next() reduction { return newReduction(d.n, d.parts(), d.n > 1) }

func (d reduction) bytes() int { return d.n * d.parts() * 8 }

// workspace is for the parts, in float64.
func (d reduction) workspace() (bytes int64) {
	for ; d.parts() > 1; d = d.next() {
		bytes += int64(d.bytes())
	}
	return bytes
}

// run launches a function that makes the parts, and what adds them up. Sums are multiplied
// by scale.
func (d reduction) run(a *driver.Args, work []byte, out *driver.Array, scale float64, module, function string, params ...any) {
	for d.n > 0 && d.parts() > 1 {
		parts := driver.Array{Type: driver.Float64, Shape: []int{d.n * d.parts()}, Strides: []int{1}, Data: work[:d.bytes()]}
		d.once(a, &parts, 1, module, function, params...)
		work = work[d.bytes():]
		d, module, function, params = d.next(), "sum", "sum_parts", []any{&parts}
	}
	d.once(a, out, scale, module, function, params...)
}

// once makes the parts.
func (d reduction) once(a *driver.Args, out *driver.Array, scale float64, module, function string, params ...any) {
	if d.n == 0 {
		return
	}
	blocks := line(d.n, threads/d.lanes)[0] * d.parts()
	run(a, module, function, [3]int{blocks, 1, 1}, append([]any{d.words(), operandOf(out, out.Shape), scale}, params...)...)
}
