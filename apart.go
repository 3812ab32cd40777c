package snug

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snug-ml/snug/internal/cuda"
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/internal/join"
	"github.com/snug-ml/snug/memory"
)

// On a device apart, kernels alone reach its memory. Whatever Go code reads or writes of it
// goes through here.

// cudaNumber reads "cuda" and "cuda:1".
func cudaNumber(kind string) (n int, ok bool) {
	if kind == "cuda" {
		return 0, true
	}
	digits, ok := strings.CutPrefix(kind, "cuda:")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0
}

// Devices describes the CUDA devices that Open finds in this build, and says for what they
// need where it was looked, and what was found.
func Devices() (found, looked []string) { return cuda.Cards(), cuda.Looked() }

// dryBytes is the limit where there is no card that has one.
const dryBytes = 1 << 40

// onCard makes the allocators of the n-th CUDA device and of the host memory beside it,
// which copies run to and from.
func (d *Device) onCard(n int) error {
	own, err := host.Limit()
	if err != nil {
		return err
	}
	if !d.values {
		d.mem = memory.New(dry.Source{}, memory.Config{LimitBytes: dryBytes, Growable: true})
		d.host = memory.New(dry.Source{}, memory.Config{LimitBytes: own})
		return nil
	}
	if d.card, err = cuda.Open(n); err != nil {
		return err
	}
	d.queue = d.card.Queue()
	d.mem = memory.New(d.card.Memory(), memory.Config{LimitBytes: d.card.Bytes(), Growable: d.card.Growable()})
	d.host = memory.New(d.card.Pinned(), memory.Config{LimitBytes: own})
	return nil
}

// write copies values into a device's memory.
func write[T Number](d *Device, dst []byte, v []T) error {
	if d.card == nil {
		upload(dst, v)
		return nil
	}
	src := make([]byte, len(v)*dtypeOf[T]().Size())
	upload(src, v)
	return d.card.Upload(dst, src)
}

// download copies to the host, from wherever the device's memory is.
func (d *Device) download(dst, src []byte) error {
	if d.card == nil {
		return host.Copy(dst, src)
	}
	return d.card.Download(dst, src)
}

// hostArray is what Go code sees of t: a copy, where t is on a device apart.
func (t *Tensor) hostArray() (driver.Array, error) {
	a := t.array()
	if t.s.dev.card == nil {
		return a, nil
	}
	n := min(t.Len(), 1) // from the first element to the last
	for i, d := range t.shape {
		n += max(0, d-1) * t.strides[i] * min(t.Len(), 1)
	}
	src := a.Data
	a.Data = make([]byte, n*t.dtype.Size())
	return a, t.s.dev.card.Download(a.Data, src[:len(a.Data)])
}

// fillApart computes first values on the host, in parts, and sends them.
func (p *Param) fillApart(a *driver.Array, r *Rand) error {
	card := p.dev.card
	if p.st.absent() {
		err := card.Wait() // for copies from what was in its place
		p.draw(a, 0, r)
		return err
	}
	if r == nil || p.init == nil {
		return card.Clear(a.Data[:p.bytes()])
	}
	const most = 1 << 20
	size := a.Type.Size()
	buf := make([]byte, min(a.Len(), most)*size)
	for first := 0; first < a.Len(); first += most {
		n := min(most, a.Len()-first)
		part := driver.Array{Type: a.Type, Shape: []int{n}, Strides: []int{1}, Data: buf[:n*size]}
		p.draw(&part, first, r)
		if err := card.Upload(a.Data[first*size:][:n*size], part.Data); err != nil {
			return err
		}
	}
	return nil
}

// write gives p, in st, the values of an array of the host's.
func (p *Param) write(st *storage, from driver.Array) error {
	a := p.array(st)
	if !p.dev.apart {
		return p.launch("cast", &driver.Args{In: []driver.Array{from}, Out: []driver.Array{a}})
	}
	to := a
	if !st.absent() {
		to.Data = make([]byte, p.bytes())
	}
	if err := p.launchOnHost("cast", &driver.Args{In: []driver.Array{from}, Out: []driver.Array{to}}); err != nil || st.absent() {
		return err
	}
	return p.dev.card.Upload(a.Data, to.Data)
}

// near is t, of any device, where a kernel on p's value reads it, until free is called.
func (p *Param) near(t *Tensor) (a driver.Array, free func(), err error) {
	a, free = t.array(), func() {}
	from, to, onHost := t.s.dev, p.dev, !p.dev.apart || p.st.absent()
	switch {
	case onHost && from.card != nil:
		a, err = t.hostArray()
	case !onHost && from != to:
		b, err := to.mem.Alloc(memory.Request{Bytes: int64(t.Len() * t.dtype.Size()), Category: memory.Workspace, Owner: to.here("lerp", p)})
		if err != nil {
			return a, free, err
		}
		src := a.Data
		a.Data, free = b.Bytes(), func() { to.mem.Free(b) }
		switch {
		case to.card == nil:
		case from.card == nil:
			err = to.card.Upload(a.Data, src[:len(a.Data)])
		default:
			err = to.card.Receive(a.Data, from.card, src[:len(a.Data)])
		}
		return a, free, err
	}
	return a, free, err
}

// stream is a copy between the host and the card or, out, the other way; it comes after what
// was queued before it, and before what is queued next.
func (d *Device) stream(dst, src []byte, out bool) error {
	n := min(len(dst), len(src))
	if d.card == nil {
		copy(dst[:n], src)
		return nil
	}
	return d.card.Start(dst[:n], src[:n], out, nil).Join()
}

// updatesOnHost reports whether the CPU updates p: where its state is on the host and does
// not come to the device for it.
func (p *Param) updatesOnHost(states []*Param) bool {
	return p.dev.apart && slices.ContainsFunc(states, func(q *Param) bool { return q.st.absent() && !q.streamed() })
}

// launchOnHost runs a kernel of the CPU. on says where its arrays are, first Out and then
// In: those on the device come to the bench for it, and results go back. Arrays without one
// are on the host.
func (p *Param) launchOnHost(kernel string, a *driver.Args, on ...*storage) (err error) {
	d := p.dev
	if d.closed.Load() {
		return errClosed
	}
	k, err := driver.Find(kernel, firstType(a), "cpu")
	if err != nil {
		return fmt.Errorf("%s: %w: %w", p.name, ErrDType, err)
	}
	alloc := func(bytes int64) (*memory.Block, error) {
		b, err := d.host.Alloc(memory.Request{Bytes: bytes, Category: memory.Workspace, Owner: d.here(kernel, p)})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		return b, nil
	}
	arrays := make([]*driver.Array, 0, len(a.Out)+len(a.In))
	for i := range a.Out {
		arrays = append(arrays, &a.Out[i])
	}
	for i := range a.In {
		arrays = append(arrays, &a.In[i])
	}
	device := make([][]byte, len(on)) // of what has come
	if len(on) > 0 {
		d.bench.mu.Lock()
		defer d.bench.mu.Unlock()
	}
	var off int
	for i, st := range on {
		if st.absent() || d.card == nil {
			continue
		}
		n := arrays[i].Len() * arrays[i].Type.Size()
		mem := d.bench.block.Bytes()[off:][:n]
		off += (n + 511) / 512 * 512
		device[i], arrays[i].Data = arrays[i].Data[:n], mem
		if err := d.card.Download(mem, device[i]); err != nil {
			return err
		}
	}
	if d.card != nil { // copies to and from the host may be under way
		if err := d.card.Wait(); err != nil {
			return err
		}
	}
	if err := d.launch(k, a, d.host, alloc); err != nil || d.card == nil {
		return err
	}
	for i := range a.Out {
		if i < len(device) && device[i] != nil {
			err = join.Errors(err, d.card.Upload(device[i], arrays[i].Data))
		}
	}
	return join.Errors(err, d.card.Wait())
}
