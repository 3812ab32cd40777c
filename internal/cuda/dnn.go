package cuda

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

// The passes of a convolution.
const (
	forwardPass = iota
	dataPass
	weightsPass
)

// dnnCall is what cuDNN is asked for: the pass writes y, x or w of the others.
type dnnCall struct {
	convolution
	dtype         driver.DType
	pass          int
	x, weights, y uint64
	add           bool // to what y has
	work          []byte
}

// A convolver is a Queue that may have cuDNN. It answers false where it has none, or
// none that can do this in the workspace.
type convolver interface {
	Convolve(*dnnCall) (bool, error)
}

// large tells whether a convolution is worth a library's while: not with fewer
// multiplications than largeConvolution, nor with groups of few channels.
func (v convolution) large() bool {
	const largeConvolution = 1 << 22
	n := 1.0 // too many elements for an int may be multiplied
	for _, d := range []int{v.n, v.o, v.oh, v.ow, v.c / v.groups, v.kh, v.kw} {
		n *= float64(d)
	}
	return n >= largeConvolution && min(v.c, v.o)/v.groups >= fewChannels && max(v.n*v.c*v.h*v.w, v.n*v.o*v.oh*v.ow) <= math.MaxInt32
}

// libraryWork is how much workspace cuDNN may have. It belongs to the shapes, so that a dry
// run need not know who computes: an eighth of what the images take, and no more than 8 MiB.
func (v convolution) libraryWork(t driver.DType) int64 {
	if !v.large() {
		return 0
	}
	return min(8<<20, int64(v.n*(v.c*v.h*v.w+v.o*v.oh*v.ow)*t.Size()/8))
}

// byLibrary has cuDNN compute a pass, where that is possible. A bias is there first, and
// the products are added to it, so that each result is rounded once.
func (v convolution) byLibrary(a *driver.Args, pass int, x, w, y, bias *driver.Array) bool {
	q, ok := a.Queue.(convolver)
	if !ok || !v.large() {
		return false
	}
	if bias != nil {
		each := driver.Array{Type: bias.Type, Shape: y.Shape, Strides: []int{0, bias.Strides[0], 0, 0}, Data: bias.Data}
		convert(&driver.Args{In: []driver.Array{each}, Out: []driver.Array{*y}, Queue: a.Queue})
	}
	done, err := q.Convolve(&dnnCall{v, x.Type, pass, address(x.Data), address(w.Data), address(y.Data), bias != nil, a.Work})
	started(a, err)
	return done || err != nil
}
