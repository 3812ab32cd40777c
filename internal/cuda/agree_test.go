//go:build cuda

package cuda

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
	_ "github.com/snug-ml/snug/internal/host"
)

// agreement runs kernels here and on the host.
type agreement struct {
	t     *testing.T
	dev   driver.Device
	queue any
	mem   []byte
	used  int
	rnd   *rand.Rand
}

func newAgreement(t *testing.T) *agreement {
	d, err := Open(0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	mem, err := d.Memory().Map(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return &agreement{t: t, dev: d, queue: d.Queue(), mem: mem, rnd: rand.New(rand.NewPCG(1, 2))}
}

// array is a contiguous one on the host with values from fn, or normal ones.
func (g *agreement) array(dtype driver.DType, shape []int, fn func() float64) driver.Array {
	if fn == nil {
		fn = g.rnd.NormFloat64
	}
	n := driver.Numel(shape)
	v := make([]float64, n)
	for i := range v {
		v[i] = fn()
	}
	from := driver.Array{Type: driver.Float64, Shape: shape, Strides: driver.RowMajor(shape), Data: driver.Bytes(v)}
	to := driver.Array{Type: dtype, Shape: shape, Strides: from.Strides, Data: make([]byte, n*dtype.Size())}
	k, err := driver.Find("cast", driver.Float64, "cpu")
	if err != nil {
		g.t.Fatal(err)
	}
	k.Run(&driver.Args{In: []driver.Array{from}, Out: []driver.Array{to}, Threads: 1})
	return to
}

// clone copies an array's memory, to the device where there is one.
func (g *agreement) clone(a driver.Array, away bool) driver.Array {
	if !away {
		a.Data = slices.Clone(a.Data)
		return a
	}
	dst := g.take(len(a.Data))
	if err := g.dev.Upload(dst, a.Data); err != nil {
		g.t.Fatal(err)
	}
	a.Data = dst
	return a
}

func (g *agreement) take(n int) []byte {
	at := g.used
	g.used += (n + 255) &^ 255
	return g.mem[at : at+n : at+n]
}

// run compares all outputs after a kernel. Where an input and an output have the same
// memory, so they have on the device.
func (g *agreement) run(name string, tol float64, a driver.Args) {
	g.t.Helper()
	g.runFirst(name, len(a.Out), tol, a)
}

// runFirst compares the first outputs only; the others are scratch.
func (g *agreement) runFirst(name string, outputs int, tol float64, a driver.Args) {
	g.t.Helper()
	first := firstType(&a)
	outs := [2][]driver.Array{g.on("cpu", name, a), g.on("cuda", name, a)}
	for j := range outputs { // between the elements of a view, too
		want, got := floatsOf(outs[0][j]), floatsOf(outs[1][j])
		for i := range want {
			off := tol * max(1, math.Abs(want[i]))
			if tol > 0 && outs[0][j].Type == driver.Uint8 { // the code beside the nearest
				off = 1
			}
			near := math.Abs(got[i]-want[i]) <= off || got[i] == want[i] || got[i] != got[i] && want[i] != want[i]
			if !near {
				g.t.Errorf("%s of %s %v, output %d of %s %v: element %d is %v, %v on the host",
					name, first, describe(a.In), j, a.Out[j].Type, a.Out[j].Shape, i, got[i], want[i])
				break
			}
		}
	}
}

func firstType(a *driver.Args) driver.DType {
	if len(a.In) > 0 {
		return a.In[0].Type
	}
	return a.Out[0].Type
}

// on runs a kernel of a backend, and gives its outputs on the host.
func (g *agreement) on(backend, name string, a driver.Args) []driver.Array {
	g.t.Helper()
	g.used = 0
	away := backend == "cuda"
	k, b := g.put(backend, name, a, away)
	k.Run(b)
	return g.back(b, away)
}

// together runs a kernel over all at once, and compares with each alone, in bits.
func (g *agreement) together(name string, as ...driver.Args) {
	g.t.Helper()
	var alone [][]driver.Array
	for _, a := range as {
		alone = append(alone, g.on(backend, name, a))
	}
	g.used = 0
	var k driver.Kernel
	all := make([]*driver.Args, len(as))
	for i, a := range as {
		k, all[i] = g.put(backend, name, a, true)
	}
	k.Group(all)
	for i, a := range all {
		for j, got := range g.back(a, true) {
			if !bytes.Equal(got.Data, alone[i][j].Data) {
				g.t.Errorf("%s of %s, number %d of %d: other bits of output %d than alone", name, describe(as[i].In), i, len(as), j)
			}
		}
	}
}

// put finds a kernel, and takes its arguments to where it runs.
func (g *agreement) put(backend, name string, a driver.Args, away bool) (driver.Kernel, *driver.Args) {
	g.t.Helper()
	k, err := driver.Find(name, firstType(&a), backend)
	if err != nil {
		g.t.Fatal(err)
	}
	b := driver.Args{F: a.F, Key: a.Key, Scale: a.Scale, Threads: 2}
	for _, x := range a.Out {
		b.Out = append(b.Out, g.clone(x, away))
	}
	for _, x := range a.In {
		same := slices.IndexFunc(a.Out, func(o driver.Array) bool { return len(x.Data) > 0 && len(o.Data) > 0 && &o.Data[0] == &x.Data[0] })
		if y := x; same >= 0 {
			y.Data = b.Out[same].Data
			b.In = append(b.In, y)
		} else {
			b.In = append(b.In, g.clone(x, away))
		}
	}
	work := 0
	if k.Workspace != nil {
		work = int(k.Workspace(&b))
	}
	if b.Work = make([]byte, work); away {
		b.Work, b.Queue = g.take(work), g.queue
	}
	return k, &b
}

// back is what a kernel has put out, on the host.
func (g *agreement) back(b *driver.Args, away bool) []driver.Array {
	g.t.Helper()
	if b.Err != nil {
		g.t.Fatal(b.Err)
	}
	for j, x := range b.Out {
		if away {
			b.Out[j].Data = make([]byte, len(x.Data))
			if err := g.dev.Download(b.Out[j].Data, x.Data); err != nil {
				g.t.Fatal(err)
			}
		}
	}
	return b.Out
}

func describe(a []driver.Array) string {
	var s []string
	for _, a := range a {
		s = append(s, fmt.Sprint(a.Type, a.Shape, a.Strides))
	}
	return strings.Join(s, ", ")
}

// floatsOf is all of an array's memory.
func floatsOf(a driver.Array) []float64 {
	v := make([]float64, len(a.Data)/a.Type.Size())
	a.Shape, a.Strides = []int{len(v)}, []int{1}
	driver.GatherFloat(v, &a)
	return v
}

// tolerance is of one rounding to a type, and of functions that differ in the last bits.
func tolerance(t driver.DType) float64 {
	return map[driver.DType]float64{driver.Float32: 4e-6, driver.Float64: 1e-13, driver.BFloat16: 1.0 / 128, driver.Float16: 1.0 / 1024}[t]
}

// transposed is an array of that shape whose dimensions lie the other way round.
func (g *agreement) transposed(dtype driver.DType, shape []int, fn func() float64) driver.Array {
	back := slices.Clone(shape)
	slices.Reverse(back)
	a := g.array(dtype, back, fn)
	slices.Reverse(a.Strides)
	a.Shape = shape
	return a
}

// shifted is one that begins in the middle of its memory.
func (g *agreement) shifted(dtype driver.DType, n int, fn func() float64) driver.Array {
	a := g.array(dtype, []int{n + 1}, fn)
	a.Shape, a.Data = []int{n}, a.Data[dtype.Size():]
	return a
}

// window is some columns of a wider array.
func (g *agreement) window(dtype driver.DType, rows, cols int) driver.Array {
	a := g.array(dtype, []int{rows, 2 * cols}, nil)
	a.Shape = []int{rows, cols}
	return a
}
